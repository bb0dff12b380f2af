/**
 * Builds the request of a call to one channel: URL, headers, body, and whether it is signed. Sends nothing.
 */
import type { CanonicalCall } from '../../wire/canonical-call.ts';
import type { ChannelType } from '../channel-type.ts';
import type { Dialect, Repeat, RequestSettings, SentBody } from '../dialect.ts';
import type { UpstreamRequest } from '../exchange.ts';
import type { KnownTexts } from '../error-text.ts';
import type { Quirks } from '../quirks.ts';
import { boundedBody, permittedCall } from '../restricted-fields.ts';
import { quirksOf, upstreamModel, type CalledChannel } from './channel-quirks.ts';
import { channelTypes, type OwnAttributeName } from './channel-types.ts';
import { isRecord, recordsIn, type JsonRecord } from '../../wire/json.ts';

type CallSettings =
  | 'outputTokensLimit'
  | 'outputTokensDefault'
  | 'states'
  | 'foreign'
  | 'callIds'
  | 'without';

interface ChannelCall extends Pick<RequestSettings, CallSettings> {
  dialect: Dialect;
  call: CanonicalCall;
  /** The public model name. */
  model: string;
  secret: string | undefined;
  /** What the model's refusals taught. */
  learned?: Partial<Quirks> | undefined;
  /** Limits from this one on are left out, because the model refused it. */
  refusedLimit?: number | undefined;
}

/** The request, and what became of the call in it. */
export interface BuiltRequest {
  request: UpstreamRequest;
  sent: SentBody;
  quirks: Quirks;
  /** What must not reach a client in the upstream's errors. */
  known: KnownTexts;
}

/** The call in a dialect, as far as the row permits it. Throws CannotCarry. */
export function sentBody(
  dialect: Pick<Dialect, 'body'>,
  asked: CanonicalCall,
  settings: RequestSettings & { dropsUnknown: boolean },
): SentBody {
  const permitted = permittedCall(asked, settings);
  const written = dialect.body(permitted.call, settings);
  const { set, drop } = settings;
  const { body, lowered, isMultiplied } = boundedBody(written.body, { set, limit: written.outputTokensMax });
  const dropped = [...permitted.dropped, ...written.dropped, ...lowered];
  return {
    ...written,
    body,
    isMultiplied,
    dropped: lostFields(asked, { ...written, body, dropped, drop, set }),
  };
}

/** Throws CannotCarry. */
export function channelRequest(channel: CalledChannel, asked: ChannelCall): BuiltRequest {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  const model = upstreamModel(channel, asked.model);
  const { dialect, secret, outputTokensLimit, outputTokensDefault, states, foreign, callIds, without } =
    asked;
  const { params } = channel;
  const quirks = { ...quirksOf(channel, asked.model), ...asked.learned };
  const settings = {
    model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.reportsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: params.max_output_tokens,
    outputTokensLimit,
    outputTokensDefault,
    limitField: channel.max_tokens_field ?? type.limitField(channel),
    allow: params.allow,
    quirks,
    apiVersion: type.apiVersion?.(channel),
    states,
    foreign,
    callIds,
    without,
    dropsUnknown: params.unknown_fields === 'drop',
  };
  const usual = sentBody(dialect, asked.call, settings);
  const { outputTokensMax = 0, limitIsLeast = false } = usual;
  const isRefused = outputTokensMax >= (asked.refusedLimit ?? Infinity) && !limitIsLeast;
  const unlimited = { ...settings, without: new Set<Repeat>([...without, 'limit']) };
  const sent = isRefused ? sentBody(dialect, asked.call, unlimited) : usual;
  const awsScope = type.awsScope?.(channel);
  const url =
    type.address?.(channel, { model, dialect: dialect.name, path: dialect.path }) ??
    `${channel.endpoint}${dialect.path}`;
  return {
    sent,
    quirks,
    known: {
      secret,
      host: new URL(url).hostname,
      region: awsScope?.region,
      model,
      publicModel: asked.model,
      vendors: Object.keys(channelTypes),
    },
    request: {
      url,
      headers: {
        'content-type': 'application/json',
        accept: type.accept ?? 'text/event-stream, application/json',
        ...dialect.headers?.(settings),
        ...(secret === undefined ? {} : type.credentials(secret, channel, dialect.name)),
      },
      body: JSON.stringify(sent.body),
      connectTimeoutMs: channel.connect_seconds * 1000,
      ...(awsScope && { awsScope }),
    },
  };
}

// Which of a client's fields had no effect at a channel. Dialects name what they leave out; here, for all of them, the
// row's own `drop` is added, and what asks for nothing is taken away.

const isNothing = (value: unknown): boolean =>
  (value ?? '') === '' ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0);

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

/** Whether a message has state that its client holds in the upstream's own fields, on the message or on its calls. */
const holdsState = (message: JsonRecord): boolean =>
  !isNothing(message['reasoning_details']) ||
  [message, ...recordsIn(message['tool_calls'])].some(({ extra_content: extra }) => !isNothing(extra));

/** `body`, `dropped`: what the dialect made of the call, and left out. `drop`, `set`: the channel's own. */
function lostFields(
  { request, unknown, items }: CanonicalCall,
  {
    body,
    dropped,
    drop,
    set,
    carriesItems,
  }: Pick<SentBody, 'body' | 'dropped' | 'carriesItems'> & { drop: readonly string[]; set: object },
): string[] {
  const asked = { ...unknown, ...request };
  const losesState =
    request.messages.some(holdsState) && !Object.values(body).flatMap(recordsIn).some(holdsState);
  const left = drop.filter((field) => Object.hasOwn(asked, field) && !Object.hasOwn(set, field));
  // A name that is no field of the client's says what became of something else, such as the state of a turn.
  const isLost = (field: string): boolean =>
    !Object.hasOwn(asked, field) || !asksForNothing(field, asked[field]);
  const lostItems = carriesItems === true ? [] : (items?.lost ?? []);
  return [...new Set([...dropped, ...left, ...lostItems, ...(losesState ? ['reasoning'] : [])])].filter(
    isLost,
  );
}
