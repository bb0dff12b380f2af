/** Any endpoint with a known dialect: a bearer token, and the path after the base address. */
import { asRecord, recordsIn, textIn, type JsonRecord } from '../../wire/json.ts';
import {
  type BalanceReport,
  type ChannelSetup,
  type ChannelAttributes,
  type ChannelType,
  type UpstreamBalance,
  plainModelList,
} from '../channel-type.ts';

const hostOf = ({ endpoint }: ChannelAttributes): string => new URL(endpoint).hostname;
const isOpenai = (channel: ChannelAttributes): boolean => hostOf(channel) === 'api.openai.com';
/** AWS's endpoints for API keys, which refuse other summaries than "auto" [coder/coder 29229, 2026-09-11]. */
const isOfAws = (channel: ChannelAttributes): boolean =>
  /^bedrock-(?:mantle|runtime)\./.test(hostOf(channel));

export const openai: ChannelType = {
  // Compatible servers of Anthropic's API read the key from either header.
  credentials: (secret, _channel, dialect) => ({
    authorization: `Bearer ${secret}`,
    ...(dialect === 'messages' && { 'x-api-key': secret }),
  }),
  // Some of OpenAI's models refuse tools elsewhere.
  alsoSpeaks: ['responses', 'embeddings'],
  // OpenAI's reasoning models refuse `max_tokens`; most other upstreams accept only `max_tokens`.
  limitField: (channel) => (isOpenai(channel) ? 'max_completion_tokens' : 'max_tokens'),
  // Compatible servers do not ask for it, and some refuse a body with it.
  endUserField: (channel) => (isOpenai(channel) ? 'safety_identifier' : undefined),
  // OpenAI refuses fields of messages that it does not know; compatible servers mostly ignore them. Few of these know
  // custom tools.
  quirks: (channel) => ({
    ...(isOpenai(channel) && {
      acceptedEchoes: [],
      supportsCustomTools: true,
      packsVectors: true,
      takesDerivedFields: true,
    }),
    ...(isOfAws(channel) && { summaryKind: 'auto' }),
  }),
};

/** Without a figure the amount is empty, which nobody accepts. Six decimals hide the errors of vendors' floats. */
function listAmount(unit: string, value: unknown, minus: unknown = 0): UpstreamBalance {
  const isFigure = typeof value === 'number' && typeof minus === 'number';
  return [{ unit, amount: isFigure ? String(Number((value - minus).toFixed(6))) : '' }];
}

/** Removes paths at which vendors offer other APIs: the API that reports balances is at the root. */
const rootOf = ({ endpoint }: ChannelAttributes): string =>
  endpoint.replace(/(?:\/(?:anthropic|beta|v1))+$/, '');
const dataIn = (body: unknown): JsonRecord => asRecord(asRecord(body)['data']);

/** How upstreams report the balance of a key [the vendors' API pages and new-api's source, November 2026]. */
const balanceForms: Record<string, (channel: ChannelAttributes) => BalanceReport> = {
  deepseek: (channel) => ({
    addresses: [`${rootOf(channel)}/user/balance`],
    read([body]) {
      const infos = recordsIn(asRecord(body)['balance_infos']);
      if (infos.length === 0) return undefined;
      return infos.map((info) => ({ unit: textIn(info['currency']), amount: textIn(info['total_balance']) }));
    },
  }),
  // The platform for China reports yuan, the other one dollars.
  moonshot: (channel) => ({
    addresses: [`${rootOf(channel)}/v1/users/me/balance`],
    read: ([body]) =>
      listAmount(hostOf(channel).endsWith('.cn') ? 'CNY' : 'USD', dataIn(body)['available_balance']),
  }),
  // Only management keys may read the credits of the account. Other keys can read only their own limit.
  openrouter: ({ endpoint }) => ({
    addresses: [`${endpoint}/credits`],
    read: ([body]) => listAmount('USD', dataIn(body)['total_credits'], dataIn(body)['total_usage'] ?? ''),
    otherwise: {
      addresses: [`${endpoint}/key`],
      read([body]) {
        const { limit_remaining: amount } = dataIn(body);
        return amount === null ? [] : listAmount('USD', amount);
      },
    },
  }),
  // In the unit that the site shows, although the fields say dollars. Usage is in hundredths; a limit of 100 million means no limit.
  'new-api': (channel) => ({
    addresses: ['subscription', 'usage'].map((name) => `${rootOf(channel)}/v1/dashboard/billing/${name}`),
    read([limits, usage]) {
      const { hard_limit_usd: limit } = asRecord(limits);
      const used = asRecord(usage)['total_usage'];
      return limit === 100_000_000
        ? []
        : listAmount('USD', limit, typeof used === 'number' ? used / 100 : '');
    },
    otherwise: {
      addresses: [`${rootOf(channel)}/api/usage/token/`],
      read([body]) {
        const { unlimited_quota: isUnlimited, total_available: amount } = dataIn(body);
        return isUnlimited === true ? [] : listAmount('quota', amount);
      },
    },
  }),
};

/** Hosts whose form is known without the attribute `balance_form`. */
const formsOfHosts: Record<string, string> = {
  'api.deepseek.com': 'deepseek',
  'api.moonshot.ai': 'moonshot',
  'api.moonshot.cn': 'moonshot',
  'openrouter.ai': 'openrouter',
};

export const openaiSetup: ChannelSetup<'balance_form'> = {
  attributes: {
    balance_form: {
      about: 'how the upstream reports its balance: deepseek, moonshot, openrouter or new-api',
      wanted: '"deepseek", "moonshot", "openrouter" or "new-api"',
      pattern: /^(?:deepseek|moonshot|openrouter|new-api)$/,
      named: 'forms of balances',
    },
  },
  balance: (channel) => balanceForms[channel.balance_form ?? formsOfHosts[hostOf(channel)] ?? '']?.(channel),
  models: plainModelList,
  questions: [
    {
      attribute: 'endpoint',
      question: 'Base address of the upstream',
      defaultAnswer: 'https://api.openai.com/v1',
    },
  ],
};
