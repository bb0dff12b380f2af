/**
 * Quirks and dialect of a channel for one model, and the HTTP request that a call becomes there. Sends nothing. Quirks
 * come from the channel's row, then its type, then the model's rules.
 */
import type { CanonicalCall, OwnForm } from '../wire/canonical-call.ts';
import { readWindow } from '../wire/service-tier.ts';
import { listUnsentDetails } from '../wire/details.ts';
import { isRecord, recordsIn, type JsonRecord } from '../wire/json.ts';
import { fieldPathOf, walkMedia, findMissingMedia, pathOf, type FoundMedium } from '../wire/media-walk.ts';
import { matchesAny, type ChannelAttributes, type ChannelType } from './channel-type.ts';
import {
  CannotCarry,
  StateLost,
  type Dialect,
  type Omission,
  type RequestSettings,
  type SentBody,
} from './dialect.ts';
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
  type windowChoices,
  type WrittenRules,
  readEffort,
} from './quirks.ts';
import type { Words } from './vocabulary.ts';
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
    words?: Words | undefined;
    max_output_tokens?: number | undefined;
    stream: boolean;
    include_usage: boolean;
    completion_windows?: (typeof windowChoices)[number] | undefined;
  };
};

const typeOf = ({ type }: CalledChannel): ChannelType<OwnAttributeName> => channelTypes[type];

const limitFieldOf = (channel: CalledChannel): string =>
  channel.max_tokens_field ?? typeOf(channel).limitField(channel);

/** The field by which the vendor tells end users apart, unless the row drops it. */
export function endUserFieldOf(channel: CalledChannel): 'user' | 'safety_identifier' | undefined {
  const field = typeOf(channel).endUserField?.(channel);
  return field !== undefined && channel.params.drop.includes(field) ? undefined : field;
}

export const upstreamModelOf = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

/** `form`: the name of the call's endpoint. */
export const canCarry = (channel: CalledChannel, form: string): boolean =>
  !ownDialectNames.includes(form) || typeOf(channel).alsoSpeaks?.includes(form) === true;

/** The row's choice, or its type's. `model`: the public name. `form`: an endpoint that may have a dialect of its own. */
export function dialectOf(channel: CalledChannel, model: string, form?: string): string {
  if (form !== undefined && ownDialectNames.includes(form)) return form;
  const { dialect } = channel;
  const chosen =
    typeof dialect === 'object' ? (Object.hasOwn(dialect, model) ? dialect[model] : undefined) : dialect;
  return chosen ?? typeOf(channel).dialect?.(upstreamModelOf(channel, model)) ?? defaultDialect;
}

/**
 * Rules of the model are overridden by the type, then by the row, then by the row's rules of this model. `model`: the
 * public name.
 */
export function quirksOf(channel: CalledChannel, model: string): Quirks {
  const type = typeOf(channel).quirks?.(channel);
  const { wantsBack, ...known } = findModelRules(upstreamModelOf(channel, model), limitFieldOf(channel));
  // Only if the type is known to accept the field that carries it.
  const isTaken = wantsBack !== 'thought_signature' || type?.acceptedEchoes?.includes('extra_content');
  return {
    ...defaultQuirks,
    ...known,
    ...(isTaken && { wantsBack }),
    ...type,
    ...readRowQuirks(channel, model),
    words: channel.params.words,
  };
}

function readRowQuirks(channel: CalledChannel, model: string): Partial<Quirks> {
  const { max_output_tokens: _bound, ...flat } = channel.params;
  return { ...convertRules(flat), ...convertRules(findRowRules(channel, model)) };
}

/** The row's rules of this model. Longer patterns win, and an exact name wins over all patterns. */
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

export const matchesRule = (channel: Pick<CalledChannel, 'mapper'>, name: string, model: string): boolean =>
  matchesAny(name, [model, upstreamModelOf(channel, model)]);

export const outputTokensMaxOf = (channel: CalledChannel, model: string): number | undefined =>
  findRowRules(channel, model).max_output_tokens ?? channel.params.max_output_tokens;

type CallSettings =
  | 'outputTokensLimit'
  | 'outputTokensDefault'
  | 'states'
  | 'foreignTurns'
  | 'dropsForeign'
  | 'callIds'
  | 'threadId'
  | 'omissions'
  | 'refusedFeatures'
  | 'unpricedHour'
  | 'serviceTiers';

interface ChannelCall extends Pick<RequestSettings, CallSettings> {
  dialect: Dialect;
  call: CanonicalCall;
  model: string;
  secret: string | undefined;
  /** Learned from the model's refusals. */
  learned?: Partial<Quirks> | undefined;
  /** A limit this high is left out, because the model refused it. */
  refusedLimit?: number | undefined;
  /** The vendor's id of the operator's customer, from the account's row. */
  profile?: string | undefined;
}

export interface BuiltRequest {
  request: UpstreamRequest;
  sent: SentBody;
  quirks: Quirks;
  /** The request names the operator's customer to the vendor. */
  namesCustomer: boolean;
  /** Must not reach a client in the upstream's errors. */
  known: KnownTexts;
}

/** Throws CannotCarry. */
export function buildRequest(channel: CalledChannel, asked: ChannelCall): BuiltRequest {
  const { dialect, call, model: publicModel, secret, learned, refusedLimit, profile, ...own } = asked;
  const { params } = channel;
  const type = typeOf(channel);
  const model = upstreamModelOf(channel, publicModel);
  const quirks = { ...quirksOf(channel, publicModel), ...learned };
  const rowQuirks = new Set(Object.keys(readRowQuirks(channel, publicModel)));
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
    rowQuirks,
    apiVersion: type.apiVersion?.(channel),
    holdsThreads: quirks.holdsThreads && (type.holdsThreads === true || rowQuirks.has('holdsThreads')),
    dropsUnknown: params.unknown_fields !== 'pass',
    submitsWindows: params.completion_windows === 'submit',
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
  const named = profile === undefined ? {} : (type.customerHeaders?.(profile, headers ?? {}) ?? {});
  const url = type.address?.(channel, { model, dialect: name, path }) ?? `${channel.endpoint}${path}`;
  return {
    sent,
    quirks,
    namesCustomer: Object.keys(named).length > 0,
    known: {
      secret,
      profile,
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
        ...named,
        ...(secret !== undefined && type.credentials(secret, channel, name, headers)),
      },
      body: JSON.stringify(sent.body),
      connectTimeoutMs: channel.connect_seconds * 1000,
      ...(awsScope && { awsScope }),
    },
  };
}

/** Builds a request about a call that the channel has taken. */
export function buildFollowUp(
  channel: CalledChannel,
  asked: Pick<UpstreamRequest, 'url' | 'method'> & { dialect: string; secret: string | undefined },
): UpstreamRequest {
  const { url, method, dialect, secret } = asked;
  const type = typeOf(channel);
  const awsScope = type.awsScope?.(channel);
  const credentials = secret === undefined ? {} : type.credentials(secret, channel, dialect);
  const headers = { accept: 'application/json', ...credentials };
  const connectTimeoutMs = channel.connect_seconds * 1000;
  return { method, url, headers, body: '', connectTimeoutMs, ...(awsScope && { awsScope }) };
}

/** Converts the call to the dialect, as far as the row permits. Throws CannotCarry. */
export function convertCall(
  dialect: Pick<Dialect, 'name' | 'body' | 'tenantFields'>,
  asked: CanonicalCall,
  settings: RequestSettings & { dropsUnknown: boolean },
): SentBody {
  const own = asked.form === dialect.name;
  const { only } = asked.native ?? {};
  if (only && !own) throw refuseOwnForm(only);
  if (settings.outputTokensLimit === 0 && !own)
    throw new CannotCarry(
      'max_tokens',
      'Zero only fills a cache, which this model does not offer: send 1 or more.',
    );
  const permissions = { ...settings, tenantFields: dialect.tenantFields };
  const { call, dropped: noEffort } = normalizeEffort(own ? asked : { ...asked, native: undefined });
  const permitted = filterCall(call, permissions, own);
  const written = writeBody(dialect, permitted.call, settings);
  if (only?.isField && !(only.param in written.body)) throw refuseOwnForm(only);
  const { body, lowered, isMultiplied } = limitBody(written.body, {
    set: settings.set,
    limit: written.outputTokensMax,
  });
  const refused = (settings.quirks.refusedFields ?? []).filter(
    (field) => Object.hasOwn(body, field) && !Object.hasOwn(settings.set, field),
  );
  for (const field of refused) delete body[field];
  const dropped = [...noEffort, ...permitted.dropped, ...written.dropped, ...lowered, ...refused];
  const isTierSent = tierFields.some(
    (field) => Object.hasOwn(body, field) && !Object.hasOwn(settings.set, field),
  );
  const { service_tier: tier } = asked.request;
  const isWindow = settings.submitsWindows && readWindow(tier) !== undefined;
  const serviceTier = (isTierSent && permitted.call.request.service_tier) || (isWindow && tier) || undefined;
  const sent = { ...written, body, isMultiplied, dropped, serviceTier };
  const { native, request, media } = asked;
  // A native body consists of other objects than the messages that are counted.
  const unsentMedia = written.isNative ? [] : findUnsentMedia((!native && media) || walkMedia(request), sent);
  return { ...sent, unsentMedia, dropped: listDroppedFields(asked, { sent, settings, unsentMedia }) };
}

const refuseOwnForm = ({ param, message, details }: OwnForm): CannotCarry =>
  new CannotCarry(param, message, details);

/** Throws CannotCarry, with the field named as the client names it. */
function writeBody(dialect: Pick<Dialect, 'body'>, call: CanonicalCall, settings: RequestSettings): SentBody {
  try {
    return dialect.body(call, settings);
  } catch (error) {
    if (!(error instanceof CannotCarry) || error instanceof StateLost) throw error;
    throw new CannotCarry(call.clientNames?.[error.param] ?? error.param, error.message, error.details);
  }
}

/** Corrects the spelling of an effort and drops an unknown one. A body in the client's own form stays unchanged. */
function normalizeEffort(call: CanonicalCall): { call: CanonicalCall; dropped: string[] } {
  const { reasoning_effort: asked, ...request } = call.request;
  const effort = typeof asked === 'string' && !call.native ? readEffort(asked) : asked;
  if (effort === asked) return { call, dropped: [] };
  return effort === undefined
    ? { call: { ...call, request }, dropped: ['reasoning_effort'] }
    : { call: { ...call, request: { ...request, reasoning_effort: effort } }, dropped: [] };
}

// Fields of the client that had no effect. Dialects report what they dropped; this adds the row's own `drop` and
// removes fields that asked for nothing.

/** OpenAI's defaults, which hold without the field. */
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
  // Concerns only the client and the relay, which always streams.
  if (field === 'stream') return true;
  // An empty effort is a mistake of the client, so it is reported as dropped.
  if (field === 'reasoning_effort') return value === null;
  if (defaults.has(field)) return (value ?? defaults.get(field)) === defaults.get(field);
  // Every answer has text.
  if (field === 'modalities' && Array.isArray(value) && value.join() === 'text') return true;
  return isNothing(value);
}

const isNothing = (value: unknown): boolean =>
  (value ?? '') === '' ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0);

interface Outcome {
  /** The dialect's body, and the fields that it dropped. */
  sent: Pick<SentBody, 'body' | 'dropped' | 'carriesItems' | 'isNative'>;
  unsentMedia: readonly FoundMedium[];
  settings: Pick<RequestSettings, 'drop' | 'set'>;
}

function listDroppedFields(call: CanonicalCall, { sent, settings, unsentMedia }: Outcome): string[] {
  const { request, unknown, served, items, native, media } = call;
  // `served` fields count only in a native body: other bodies have them under other names.
  const asked = { ...unknown, ...(sent.isNative && served), ...request };
  const isSent = (holds: (message: JsonRecord) => boolean): boolean =>
    Object.values(sent.body).flatMap(recordsIn).some(holds);
  const isStateLost = request.messages.some(holdsState) && !isSent(holdsState);
  const lostInMessages = sent.isNative ? [] : listUnsentDetails(call.messageFields ?? [], sent.body);
  const left = settings.drop.filter(
    (field) => Object.hasOwn(asked, field) && !Object.hasOwn(settings.set, field),
  );
  const lostItems = sent.carriesItems ? [] : (items?.lost ?? []);
  const lostOfNative = sent.isNative ? [] : (native?.lost ?? []);
  const places =
    native && !sent.isNative ? findUnsentMedia(media ?? walkMedia(native.body), sent) : unsentMedia;
  const lostMedia = places.filter(({ block = '' }) => !lostOfNative.includes(block));
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
  // A name that is not a field stands for something else, such as the state of a turn.
  return [...names].filter((field) => !Object.hasOwn(asked, field) || !asksForNothing(field, asked[field]));
}

/** Finds the media of messages that were not sent. A dialect refuses media that it knows but can't send. */
function findUnsentMedia(places: Iterable<FoundMedium>, { body }: Outcome['sent']): FoundMedium[] {
  return findMissingMedia(places, body).filter((place) => /^(?:messages|system)\b/.test(pathOf(place)));
}

/** The model may continue before the tool has answered. */
const isAsync = (tool: JsonRecord): boolean => tool['async'] === true;
const sendsAsync = ({ body, carriesItems }: Outcome['sent']): boolean =>
  carriesItems === true || recordsIn(body['tools']).some(isAsync);

/** State in the upstream's own fields, on the message or on its calls. */
const holdsState = (message: JsonRecord): boolean =>
  !isNothing(message['reasoning_details']) ||
  [message, ...recordsIn(message['tool_calls'])].some(({ extra_content: extra }) => !isNothing(extra));
