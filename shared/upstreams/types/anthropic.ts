/** Anthropic's own API. Its OpenAI-compatible endpoint is for rows that choose that dialect. */
import { asRecord, isRecord, recordsIn, type JsonRecord } from '../../wire/json.ts';
import { effortScale, ruleForms, type WrittenRules } from '../quirks.ts';
import { apiVersionAttribute, type ChannelSetup, type ChannelType, readModelPage } from '../channel-type.ts';

/** From this version on, keys are bearer tokens. */
const bearerSince = '2026-10-21';

const buildKeyHeader = (secret: string): Record<string, string> => ({ 'x-api-key': secret });

export const anthropic: ChannelType<'api_version'> = {
  dialect: () => 'messages',
  // The version may be the client's.
  credentials: (secret, _channel, dialect, sent) =>
    dialect === 'messages' && (sent?.['anthropic-version'] ?? '') < bearerSince
      ? buildKeyHeader(secret)
      : { authorization: `Bearer ${secret}` },
  apiVersion: ({ api_version: version }) => version,
  limitField: () => 'max_tokens',
  // Messages has it as `metadata.user_id`.
  endUserField: () => 'user',
  /**
   * Some gateways in front of the API send these types with a 400. An account without credit comes as
   * `invalid_request_error`, and only its text tells it from a caller's mistake: docs/channels.md.
   */
  classifyFault: (_status, { type }) =>
    type === 'authentication_error' || type === 'billing_error' || type === 'permission_error'
      ? 'secret'
      : undefined,
};

const [, limits] = ruleForms.max_output_tokens;
/** Any other value would make the whole row invalid. */
const isLimit = (tokens: number): boolean => tokens >= limits.least && tokens <= limits.most;

const isSupported = (capability: unknown): boolean => asRecord(capability)['supported'] === true;

/** [anthropic-sdk-typescript 1.12, `ModelInfo`, November 2026] */
function readListedRules({ capabilities, max_tokens: limit }: JsonRecord): WrittenRules {
  const { effort, thinking } = asRecord(capabilities);
  const { adaptive, disabled, between_tools: between } = asRecord(asRecord(thinking)['types']);
  const known = effortScale.filter((each) => isSupported(asRecord(effort)[each]));
  const isOff = isSupported(disabled) || isSupported(between);
  return {
    ...(isRecord(thinking) && {
      thinking: isSupported(adaptive) ? 'adaptive' : isSupported(thinking) ? 'budget' : 'none',
    }),
    // A model that only takes a budget thinks only when it gets one.
    ...(isSupported(adaptive) && {
      efforts: [...(isOff ? ['none'] : []), ...known],
      ...(!isSupported(disabled) && { thinking_off: isOff ? 'between_tools' : 'always' }),
    }),
    ...(Number.isSafeInteger(limit) && isLimit(Number(limit)) && { max_output_tokens: Number(limit) }),
  };
}

export const anthropicSetup: ChannelSetup<'api_version'> = {
  attributes: { api_version: apiVersionAttribute },
  defaultEndpoint: () => 'https://api.anthropic.com/v1',
  models: {
    address: ({ endpoint }, after) =>
      `${endpoint}/models?limit=1000${after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`}`,
    headers: (secret) => ({ ...buildKeyHeader(secret), 'anthropic-version': '2023-06-01' }),
    read(body) {
      const page = readModelPage(body);
      const entries = recordsIn(asRecord(body)['data']);
      return (
        page && {
          ...page,
          rules: new Map(entries.map((entry) => [String(entry['id']), readListedRules(entry)])),
        }
      );
    },
  },
  questions: [],
};
