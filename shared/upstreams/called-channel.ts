/**
 * What a channel is for one model, and the request that a call becomes there: URL, headers, body, and whether it is signed.
 * Sends nothing. How a channel differs from its dialect its row says, else its type, else its model.
 */
import type { CanonicalCall } from '../wire/canonical-call.ts';
import { isRecord, recordsIn, type JsonRecord } from '../wire/json.ts';
import { fieldPathOf, walkMedia, findMissingMedia, pathOf, type MediaPlace } from '../wire/media-walk.ts';
import { matchNames, type ChannelAttributes, type ChannelType } from './channel-type.ts';
import { CannotCarry, type Dialect, type Omission, type RequestSettings, type SentBody } from './dialect.ts';
import { defaultDialect, ownDialectNames } from './dialects/dialects.ts';
import type { KnownTexts } from './error-text.ts';
import type { UpstreamRequest } from './exchange.ts';
import { findModelRules } from './model-rules.ts';
import {
  defaultQuirks,
  convertRules,
  type LimitField,
  type Quirks,
  type unknownFieldChoices,
  type WrittenRules,
} from './quirks.ts';
import { limitBody, filterCall, tierFields } from './restricted-fields.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './types/channel-types.ts';

/** The attributes of a channel's row that a request needs. */
export type CalledChannel = ChannelAttributes<OwnAttributeName> & {
  type: ChannelTypeName;
  /** For all models, or by public name. */
  dialect?: string | Record<string, string> | undefined;
  mapper: Record<string, string>;
  connect_seconds: number;
  max_tokens_field?: LimitField | undefined;
  params: Omit<WrittenRules, 'max_output_tokens'> & {
    /** By the public or the upstream's name, with `*` for any text. */
    model_rules?: Record<string, WrittenRules> | undefined;
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
export function endUserFieldOf(channel: CalledChannel): 'user' | 'safety_identifier' | undefined {
  const field = typeOf(channel).endUserField?.(channel);
  return field !== undefined && channel.params.drop.includes(field) ? undefined : field;
}

export const upstreamModelOf = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

/** Whether a channel can be sent a call of an endpoint. `form`: the endpoint's name. */
export const canCarry = (channel: CalledChannel, form: string): boolean =>
  !ownDialectNames.includes(form) || typeOf(channel).alsoSpeaks?.includes(form) === true;

/**
 * The dialect that a channel speaks for a model: the row's choice, else its type's. `model`: the public name; `form`: that of a call,
 * which may have a dialect of its own.
 */
export function dialectOf(channel: CalledChannel, model: string, form?: string): string {
  if (form !== undefined && ownDialectNames.includes(form)) return form;
  const { dialect } = channel;
  const chosen =
    typeof dialect === 'object' ? (Object.hasOwn(dialect, model) ? dialect[model] : undefined) : dialect;
  return chosen ?? typeOf(channel).dialect?.(upstreamModelOf(channel, model)) ?? defaultDialect;
}

/**
 * How a channel differs from its dialect for a model, what was said of more models first: by the model's name, the type, the row,
 * the row of this model. `model`: the public name.
 */
export function quirksOf(channel: CalledChannel, model: string): Quirks {
  const type = typeOf(channel).quirks?.(channel);
  const { wantsBack, ...known } = findModelRules(upstreamModelOf(channel, model), limitFieldOf(channel));
  // Only where the field that carries it is known to be taken.
  const isTaken = wantsBack !== 'thought_signature' || type?.acceptedEchoes?.includes('extra_content');
  return {
    ...defaultQuirks,
    ...known,
    ...(isTaken && { wantsBack }),
    ...type,
    ...readRowQuirks(channel, model),
  };
}

function readRowQuirks(channel: CalledChannel, model: string): Partial<Quirks> {
  const { max_output_tokens: _bound, ...flat } = channel.params;
  return { ...convertRules(flat), ...convertRules(findRowRules(channel, model)) };
}

/** What the row says of this model: the longest pattern counts, and a name before all patterns. */
export function findRowRules(
  { params, mapper }: Pick<CalledChannel, 'mapper' | 'params'>,
  model: string,
): WrittenRules {
  const fitting = Object.entries(params.model_rules ?? {}).filter(([name]) =>
    matchesRule({ mapper }, name, model),
  );
  fitting.sort(([a], [b]) => specificityOf(a) - specificityOf(b));
  return Object.assign({}, ...fitting.map(([, rules]) => rules));
}

/** Patterns have at most 128 characters. */
const specificityOf = (name: string): number => (name.includes('*') ? name.length : 1000);

/** Whether a name or pattern of `model_rules` means the model. */
export function matchesRule(channel: Pick<CalledChannel, 'mapper'>, name: string, model: string): boolean {
  const names = [model, upstreamModelOf(channel, model)];
  // Each call asks this for each name of a row.
  return name.includes('*') ? matchNames([name], names).length > 0 : names.includes(name);
}

/** The most output tokens that the row says of the model. */
export const outputTokensMaxOf = (channel: CalledChannel, model: string): number | undefined =>
  findRowRules(channel, model).max_output_tokens ?? channel.params.max_output_tokens;

type CallSettings =
  | 'outputTokensLimit'
  | 'outputTokensDefault'
  | 'states'
  | 'foreignTurns'
  | 'dropsForeign'
  | 'callIds'
  | 'omissions'
  | 'refusedFeatures'
  | 'unpricedHour'
  | 'serviceTiers';

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
export function buildRequest(channel: CalledChannel, asked: ChannelCall): BuiltRequest {
  const { dialect, call, model: publicModel, secret, learned, refusedLimit, ...own } = asked;
  const { params } = channel;
  const type = typeOf(channel);
  const model = upstreamModelOf(channel, publicModel);
  const quirks = { ...quirksOf(channel, publicModel), ...learned };
  const settings = {
    ...own,
    model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.reportsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: outputTokensMaxOf(channel, publicModel),
    limitField: quirks.limitField ?? limitFieldOf(channel),
    allow: params.allow,
    quirks,
    rowQuirks: new Set(Object.keys(readRowQuirks(channel, publicModel))),
    apiVersion: type.apiVersion?.(channel),
    dropsUnknown: params.unknown_fields !== 'pass',
  };
  const usual = convertCall(dialect, call, settings);
  const { outputTokensMax = 0, isLimitLowest = false } = usual;
  const isRefused = outputTokensMax >= (refusedLimit ?? Infinity) && !isLimitLowest;
  const unlimited = { ...settings, omissions: new Set<Omission>([...own.omissions, 'limit']) };
  const sent = isRefused ? convertCall(dialect, call, unlimited) : usual;
  const awsScope = type.awsScope?.(channel);
  const { name } = dialect;
  const { path = dialect.path } = sent;
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
export function convertCall(
  dialect: Pick<Dialect, 'name' | 'body' | 'tenantFields'>,
  asked: CanonicalCall,
  settings: RequestSettings & { dropsUnknown: boolean },
): SentBody {
  const own = asked.form === dialect.name;
  const { only } = asked.native ?? {};
  if (only && !own) throw new CannotCarry(only.param, only.message);
  if (settings.outputTokensLimit === 0 && !own)
    throw new CannotCarry(
      'max_tokens',
      'Zero only fills a cache, which this model does not offer: send 1 or more.',
    );
  const permissions = { ...settings, tenantFields: dialect.tenantFields };
  const permitted = filterCall(own ? asked : { ...asked, native: undefined }, permissions, own);
  const written = dialect.body(permitted.call, settings);
  const { body, lowered, isMultiplied } = limitBody(written.body, {
    set: settings.set,
    limit: written.outputTokensMax,
  });
  const dropped = [...permitted.dropped, ...written.dropped, ...lowered];
  const isTierSent = tierFields.some(
    (field) => Object.hasOwn(body, field) && !Object.hasOwn(settings.set, field),
  );
  const serviceTier = (isTierSent && permitted.call.request.service_tier) || undefined;
  const sent = { ...written, body, isMultiplied, dropped, serviceTier };
  return { ...sent, dropped: listDroppedFields(asked, { sent, settings }) };
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

function asksForNothing(field: string, value: unknown): boolean {
  // Between the client and the relay alone, which streams as it does for every call.
  if (field === 'stream') return true;
  if (defaults.has(field)) return (value ?? defaults.get(field)) === defaults.get(field);
  // Text is what every answer has.
  if (field === 'modalities' && Array.isArray(value) && value.join() === 'text') return true;
  return isNothing(value);
}

const isNothing = (value: unknown): boolean =>
  (value ?? '') === '' ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0);

interface Outcome {
  /** What the dialect made of the call, and left out. */
  sent: Pick<SentBody, 'body' | 'dropped' | 'carriesItems' | 'isNative'>;
  settings: Pick<RequestSettings, 'drop' | 'set'>;
}

function listDroppedFields(call: CanonicalCall, { sent, settings }: Outcome): string[] {
  const { request, unknown, served, items, native } = call;
  // Elsewhere these are said in other words.
  const asked = { ...unknown, ...(sent.isNative && served), ...request };
  const isSent = (holds: (message: JsonRecord) => boolean): boolean =>
    Object.values(sent.body).flatMap(recordsIn).some(holds);
  const isStateLost = request.messages.some(holdsState) && !isSent(holdsState);
  const lostInMessages = (call.messageFields ?? []).filter((name) => !isSent((message) => name in message));
  const left = settings.drop.filter(
    (field) => Object.hasOwn(asked, field) && !Object.hasOwn(settings.set, field),
  );
  const lostItems = sent.carriesItems ? [] : (items?.lost ?? []);
  const lostOfNative = sent.isNative ? [] : (native?.lost ?? []);
  const lostMedia = (sent.isNative ? [] : findUnsentMedia(call, sent)).filter(
    ({ block = '' }) => !lostOfNative.includes(block),
  );
  const names = new Set([
    ...sent.dropped,
    ...left,
    ...lostItems,
    ...lostOfNative,
    ...lostInMessages,
    ...lostMedia.map(fieldPathOf),
    ...(sent.isNative ? [] : (call.lostMedia ?? [])),
    ...(isStateLost ? ['reasoning'] : []),
    ...(request.tools?.some(isAsync) && !sendsAsync(sent) ? ['async'] : []),
  ]);
  // A name that is no field of the client's says what became of something else, such as the state of a turn.
  return [...names].filter((field) => !Object.hasOwn(asked, field) || !asksForNothing(field, asked[field]));
}

/** The media of the messages of which nothing went up. What a dialect cannot send of a part that it knows, it refuses. */
function findUnsentMedia({ request, native, media }: CanonicalCall, { body }: Outcome['sent']): MediaPlace[] {
  const { system, messages } = native?.body ?? request;
  const lost = findMissingMedia(media ?? walkMedia({ system, messages }), body);
  return lost.filter((place) => /^(?:messages|system)\b/.test(pathOf(place)));
}

/** Whether the model may go on before the tool has answered. */
const isAsync = (tool: JsonRecord): boolean => tool['async'] === true;
const sendsAsync = ({ body, carriesItems }: Outcome['sent']): boolean =>
  carriesItems === true || recordsIn(body['tools']).some(isAsync);

/** Whether a message has state that its client holds in the upstream's own fields, on the message or on its calls. */
const holdsState = (message: JsonRecord): boolean =>
  !isNothing(message['reasoning_details']) ||
  [message, ...recordsIn(message['tool_calls'])].some(({ extra_content: extra }) => !isNothing(extra));
