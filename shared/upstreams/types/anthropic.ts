/** Anthropic's own API. Its OpenAI-compatible endpoint is for rows that choose that dialect. */
import { asRecord, isRecord, recordsIn, textIn, type JsonRecord } from '../../wire/json.ts';
import { effortScale, ruleForms, type WrittenRules } from '../quirks.ts';
import {
  apiVersionAttribute,
  type ChannelSetup,
  type ChannelType,
  type CustomerProfiles,
  readModelPage,
} from '../channel-type.ts';

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
  holdsThreads: true,
  // Only with the headers of Messages: the vendor's other endpoints do not know profiles.
  customerHeaders: (
    profile,
    { 'anthropic-version': version, 'anthropic-beta': betas },
  ): Record<string, string> =>
    version === undefined
      ? {}
      : {
          'anthropic-user-profile-id': profile,
          'anthropic-beta': betas === undefined ? profileBeta : `${betas},${profileBeta}`,
        },
};

/** The last version that still needs a beta header [anthropic-sdk-typescript 1.14]. */
const profileBeta = 'user-profiles-2026-09-04';
const profilePattern = /^uprof_[A-Za-z0-9]{1,64}$/;

const wordPattern = /^[\w:.+-]{1,64}$/;
const wordOf = (value: unknown): string | undefined =>
  wordPattern.test(textIn(value)) ? textIn(value) : undefined;

/** Profiles of companies that buy resold API access, not of a product's users [platform.claude.com, "User profiles", November 2026]. */
const profiles: CustomerProfiles = {
  attribute: 'anthropic_profile',
  address: ({ endpoint }, id) => `${endpoint}/user_profiles${id === undefined ? '' : `/${id}`}`,
  headers: (secret) => ({ ...buildKeyHeader(secret), 'anthropic-version': '2023-06-01' }),
  body: (name) => ({ access_type: 'passthrough', ...(name !== undefined && { name }) }),
  read(body) {
    const { id, name, enforcement_status: status, enforcement_actions: actions } = asRecord(body);
    if (!profilePattern.test(textIn(id))) return undefined;
    return {
      id: textIn(id),
      name: textIn(name) || undefined,
      // Some versions of the API leave it out.
      status: wordOf(status) ?? 'unknown',
      actions: recordsIn(actions).map(({ type, reason, expires_at: end }) =>
        [type, reason, ...(end === null ? [] : ['until', end])]
          .flatMap((word) => wordOf(word) ?? [])
          .join(' '),
      ),
    };
  },
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
  profiles,
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
