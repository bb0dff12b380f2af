/**
 * What a channel is for one model, and the request that a call becomes there: URL, headers, body, and whether it is signed.
 * Sends nothing. How a channel differs from its dialect its row says, else its type, else its model.
 */
import type { CanonicalCall } from '../wire/canonical-call.ts';
import { isRecord, recordsIn, type JsonRecord } from '../wire/json.ts';
import type { ChannelAttributes, ChannelType } from './channel-type.ts';
import { CannotCarry, type Dialect, type Repeat, type RequestSettings, type SentBody } from './dialect.ts';
import { defaultDialect } from './dialects/dialects.ts';
import type { KnownTexts } from './error-text.ts';
import type { UpstreamRequest } from './exchange.ts';
import { noQuirks, type LimitField, type Quirks, type unknownFieldChoices } from './quirks.ts';
import { boundedBody, permittedCall } from './restricted-fields.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './types/channel-types.ts';

/** The quirks that a row may name in its `params`, by their names there. Absent: as the type and the model have it. */
const paramNames = {
  call_ids: 'callIds',
  system: 'system',
  null_content: 'nullContent',
  think_tags: 'thinkTags',
  efforts: 'efforts',
  custom_tools: 'customTools',
  wants_back: 'wantsBack',
} as const satisfies Record<string, keyof Quirks>;
type QuirkParams = { [Param in keyof typeof paramNames]?: Quirks[(typeof paramNames)[Param]] | undefined };

/** The attributes of a channel's row that a request needs. */
export type CalledChannel = ChannelAttributes<OwnAttributeName> & {
  type: ChannelTypeName;
  /** For all models, or by public name. */
  dialect?: string | Record<string, string> | undefined;
  mapper: Record<string, string>;
  connect_seconds: number;
  max_tokens_field?: LimitField | undefined;
  params: QuirkParams & {
    set: JsonRecord;
    drop: string[];
    allow: string[];
    unknown_fields?: (typeof unknownFieldChoices)[number] | undefined;
    max_output_tokens?: number | undefined;
    stream: boolean;
    include_usage: boolean;
  };
};

const typeOf = ({ type }: CalledChannel): ChannelType<OwnAttributeName> => channelTypes[type];

const limitFieldOf = (channel: CalledChannel): string =>
  channel.max_tokens_field ?? typeOf(channel).limitField(channel);

/** The field that tells a channel's vendor end users apart. Undefined: it does not ask, or the row leaves the field out. */
export function endUserField(channel: CalledChannel): 'user' | 'safety_identifier' | undefined {
  const field = typeOf(channel).endUserField?.(channel);
  return field !== undefined && channel.params.drop.includes(field) ? undefined : field;
}

export const upstreamModel = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

/** The dialect that a channel speaks for a model: the row's choice, else its type's. `model`: the public name. */
export function dialectOf(channel: CalledChannel, model: string): string {
  const { dialect } = channel;
  const chosen =
    typeof dialect === 'object' ? (Object.hasOwn(dialect, model) ? dialect[model] : undefined) : dialect;
  return chosen ?? typeOf(channel).dialect?.(upstreamModel(channel, model)) ?? defaultDialect;
}

/** How a channel differs from its dialect for a model. `model`: the public name. */
export function quirksOf(channel: CalledChannel, model: string): Quirks {
  const name = upstreamModel(channel, model);
  const named = Object.entries(paramNames).flatMap(([param, quirk]) => {
    const value = channel.params[param as keyof QuirkParams];
    return value === undefined ? [] : [[quirk, value]];
  });
  return {
    ...noQuirks,
    ...modelQuirks(name, limitFieldOf(channel)),
    ...typeOf(channel).quirks?.(channel, name),
    ...(Object.fromEntries(named) as Partial<Quirks>),
  };
}

type CallSettings =
  | 'outputTokensLimit'
  | 'outputTokensDefault'
  | 'states'
  | 'foreign'
  | 'callIds'
  | 'without'
  | 'refusedFeatures'
  | 'unpricedHour';

interface ChannelCall extends Pick<RequestSettings, CallSettings> {
  dialect: Dialect;
  call: CanonicalCall;
  model: string;
  secret: string | undefined;
  /** What the model's refusals taught. */
  learned?: Partial<Quirks> | undefined;
  /** Limits from this one on are left out, because the model refused it. */
  refusedLimit?: number | undefined;
}

export interface BuiltRequest {
  request: UpstreamRequest;
  sent: SentBody;
  quirks: Quirks;
  /** What must not reach a client in the upstream's errors. */
  known: KnownTexts;
}

/** Throws CannotCarry. */
export function channelRequest(channel: CalledChannel, asked: ChannelCall): BuiltRequest {
  const { dialect, call, model: publicModel, secret, learned, refusedLimit, ...own } = asked;
  const { params } = channel;
  const type = typeOf(channel);
  const model = upstreamModel(channel, publicModel);
  const quirks = { ...quirksOf(channel, publicModel), ...learned };
  const settings = {
    ...own,
    model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.reportsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: params.max_output_tokens,
    limitField: limitFieldOf(channel),
    allow: params.allow,
    quirks,
    apiVersion: type.apiVersion?.(channel),
    dropsUnknown: params.unknown_fields === 'drop',
  };
  const usual = sentBody(dialect, call, settings);
  const { outputTokensMax = 0, limitIsLeast = false } = usual;
  const isRefused = outputTokensMax >= (refusedLimit ?? Infinity) && !limitIsLeast;
  const unlimited = { ...settings, without: new Set<Repeat>([...own.without, 'limit']) };
  const sent = isRefused ? sentBody(dialect, call, unlimited) : usual;
  const awsScope = type.awsScope?.(channel);
  const { name, path } = dialect;
  const headers = dialect.headers?.(settings, call, sent);
  const url = type.address?.(channel, { model, dialect: name, path }) ?? `${channel.endpoint}${path}`;
  return {
    sent,
    quirks,
    known: {
      secret,
      host: new URL(url).hostname,
      region: awsScope?.region,
      model,
      publicModel,
      vendors: Object.keys(channelTypes),
    },
    request: {
      url,
      headers: {
        'content-type': 'application/json',
        accept: type.accept ?? 'text/event-stream, application/json',
        ...headers,
        ...(secret !== undefined && type.credentials(secret, channel, name, headers)),
      },
      body: JSON.stringify(sent.body),
      connectTimeoutMs: channel.connect_seconds * 1000,
      ...(awsScope && { awsScope }),
    },
  };
}

/** The call in a dialect, as far as the row permits it. Throws CannotCarry. */
export function sentBody(
  dialect: Pick<Dialect, 'name' | 'body'>,
  asked: CanonicalCall,
  settings: RequestSettings & { dropsUnknown: boolean },
): SentBody {
  const own = asked.form === dialect.name;
  const { only } = asked.native ?? {};
  if (only && !own) throw new CannotCarry(only.param, only.message);
  const permitted = permittedCall(own ? asked : { ...asked, native: undefined }, settings);
  const written = dialect.body(permitted.call, settings);
  const { body, lowered, isMultiplied } = boundedBody(written.body, {
    set: settings.set,
    limit: written.outputTokensMax,
  });
  const dropped = [...permitted.dropped, ...written.dropped, ...lowered];
  const sent = { ...written, body, isMultiplied, dropped };
  return { ...sent, dropped: lostFields(asked, { sent, settings }) };
}

// Which of a client's fields had no effect at a channel. Dialects name what they leave out; here, for all of them, the
// row's own `drop` is added, and what asks for nothing is taken away.

/** Values that are in force without their field, too: OpenAI's defaults. */
const defaults = new Map<string, unknown>([
  ['temperature', 1],
  ['top_p', 1],
  ['presence_penalty', 0],
  ['frequency_penalty', 0],
  ['repetition_penalty', 1],
  ['top_logprobs', 0],
  ['n', 1],
  ['service_tier', 'auto'],
  ['verbosity', 'medium'],
  ['truncation', 'disabled'],
  ['tool_choice', 'auto'],
  ['parallel_tool_calls', true],
]);

/** Fields that are between the client and the relay alone, which streams and stores as it does for every call. */
const relaysOwn = new Set(['store', 'stream']);

function asksForNothing(field: string, value: unknown): boolean {
  if (relaysOwn.has(field)) return true;
  if (defaults.has(field)) return (value ?? defaults.get(field)) === defaults.get(field);
  // Text is what every answer has.
  if (field === 'modalities' && Array.isArray(value) && value.join() === 'text') return true;
  return isNothing(value);
}

const isNothing = (value: unknown): boolean =>
  (value ?? '') === '' ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0);

interface Losses {
  /** What the dialect made of the call, and left out. */
  sent: Pick<SentBody, 'body' | 'dropped' | 'carriesItems' | 'isNative'>;
  settings: Pick<RequestSettings, 'drop' | 'set'>;
}

function lostFields(call: CanonicalCall, { sent, settings }: Losses): string[] {
  const { request, unknown, served, items, native } = call;
  // Elsewhere these are said in other words.
  const asked = { ...unknown, ...(sent.isNative && served), ...request };
  const losesState =
    request.messages.some(holdsState) && !Object.values(sent.body).flatMap(recordsIn).some(holdsState);
  const left = settings.drop.filter(
    (field) => Object.hasOwn(asked, field) && !Object.hasOwn(settings.set, field),
  );
  const lostItems = sent.carriesItems ? [] : (items?.lost ?? []);
  const lostOfNative = sent.isNative ? [] : (native?.lost ?? []);
  const names = new Set([
    ...sent.dropped,
    ...left,
    ...lostItems,
    ...lostOfNative,
    ...(losesState ? ['reasoning'] : []),
  ]);
  // A name that is no field of the client's says what became of something else, such as the state of a turn.
  return [...names].filter((field) => !Object.hasOwn(asked, field) || !asksForNothing(field, asked[field]));
}

/** Whether a message has state that its client holds in the upstream's own fields, on the message or on its calls. */
const holdsState = (message: JsonRecord): boolean =>
  !isNothing(message['reasoning_details']) ||
  [message, ...recordsIn(message['tool_calls'])].some(({ extra_content: extra }) => !isNothing(extra));

// What vendors' models want whoever serves them.

/** Of the rules that fit the upstream's name of the model, the first that says something of a field counts. */
function modelQuirks(model: string, limitField: string): Partial<Quirks> {
  const fitting = modelRules.filter(([models]) => models.test(model)).toReversed();
  const { limitFields, ...quirks }: Partial<Quirks> = Object.assign({}, ...fitting.map(([, own]) => own));
  // Other servers of such a model may accept another field for a limit: theirs is what the channel says.
  return limitFields?.some((field) => field === limitField) ? { ...quirks, limitFields } : quirks;
}

const lowToHigh = ['low', 'medium', 'high'];
const lowToXhigh = [...lowToHigh, 'xhigh'];
const lowToMax = [...lowToXhigh, 'max'];

/** OpenAI's names, alone or behind a vendor's name as `openai/` and `openai.`. */
const gpt = (name: string): RegExp => new RegExp(String.raw`(?:^|[./])gpt-${name}`, 'i');
const gemini = (name: string): RegExp => new RegExp(String.raw`\bgemini-${name}`, 'i');

/** A line a rule. Sources: the vendors' pages of November 2026, or the thread that is named. */
const modelRules: readonly [models: RegExp, Partial<Quirks>][] = [
  // Models that reason accept no temperature but 1, and one of the fields for a limit.
  [
    /(^|[./])(o[134]\b|gpt-([5-9]|\d{2})(?!.*chat))/i,
    { sampling: 'none', limitFields: ['max_completion_tokens'] },
  ],
  // Efforts by variant [anomalyco/opencode 26268, 2026-05-08, by the vendor's own refusals; openai/codex 6647, 2025-11-14].
  [gpt(String.raw`5-chat`), { efforts: [] }],
  [gpt(String.raw`5\.\d-chat`), { efforts: ['medium'] }],
  [gpt(String.raw`5-pro`), { efforts: ['high'] }],
  [gpt(String.raw`5\.[2-5]-pro`), { efforts: ['medium', 'high', 'xhigh'] }],
  [gpt(String.raw`5\.1-codex-max`), { efforts: lowToXhigh }],
  [gpt(String.raw`5(\.1)?-codex`), { efforts: lowToHigh }],
  [gpt(String.raw`5\.[2-5]-codex`), { efforts: lowToXhigh }],
  // Efforts by version: "Supported values are" of the vendor's refusals [anomalyco/opencode 4451, 2025-11-18, for 5.1;
  // docs.rs meerkat-core 0.6.25 for 5.2 to 5.5; pydantic/pydantic-ai 7081, July 2026, for 5.6].
  [gpt(String.raw`5(?![.\d])`), { efforts: ['minimal', ...lowToHigh] }],
  [gpt(String.raw`5\.1(?!\d)`), { efforts: ['none', ...lowToHigh] }],
  [gpt(String.raw`5\.[2-5](?!\d)`), { efforts: ['none', ...lowToXhigh] }],
  [gpt(String.raw`5\.[6-9](?!\d)`), { efforts: ['none', ...lowToMax] }],
  // [UKGovernmentBEIS/inspect_ai 5254, 2026-09-04; latest-model guides of 6.1 (2026-09-29) and 6.2 (2026-11-17)]
  [gpt(String.raw`(6-astra|6\.1-sol|6\.[2-9])`), { efforts: lowToMax }],
  [gpt(String.raw`6`), { efforts: ['none', ...lowToMax] }],
  // [platform.openai.com/docs/guides/reasoning; for gpt-oss its model card, 2025-08-05]
  [/(^|[./])(o[134]\b|gpt-oss)/i, { efforts: lowToHigh }],
  // They do not reason: "Unrecognized request argument supplied: reasoning_effort".
  [gpt(String.raw`(3\.5|4)`), { efforts: [] }],
  // Thinking levels [ai.google.dev, "Thinking", "OpenAI compatibility"; ENTERPILOT/GoModel 862, 2026-09-02; vercel/ai
  // 18986, 2026-08-18]. None of these models stops thinking, but for 2.5 Flash.
  [gemini(String.raw`(3\.[7-9]|[4-9]|\d{2}|.*-latest$)`), { efforts: lowToHigh }],
  [gemini(String.raw`3(\.1)?-pro`), { efforts: lowToHigh }],
  [gemini(String.raw`(3|2\.5-pro)`), { efforts: ['minimal', ...lowToHigh] }],
  [gemini(String.raw`2\.5`), { efforts: ['none', 'minimal', ...lowToHigh] }],
  // "Requests ending with a model turn are not supported" [LibreChat-AI/agents 323, 2026-07-21, tried model by model;
  // anomalyco/opencode 47034, 2026-09-03].
  [gemini(String.raw`(3\.5-flash-lite|3\.[6-9]|[4-9]|\d{2}|.*-latest$)`), { lastTurn: 'user' }],
  // A tool loop whose earlier turns lack the field is refused. The names change faster than this table, so every name
  // counts [ad-naan/Adnify 193, 2026-09-15, for `deepseek-flash`]; servers that refuse the field are asked without it.
  [/deepseek/i, { wantsBack: 'reasoning_content' }],
  // `k3` is the name in Kimi's plan for coding.
  [/\bkimi\b|(^|\/)k[2-9]\b/i, { wantsBack: 'reasoning_content' }],
];
