/**
 * Builds the request of a call to one channel: URL, headers, body, and whether it is signed. Sends nothing.
 */
import type { CanonicalCall } from '../../wire/canonical-call.ts';
import type { ChatMessage } from '../../wire/chat-request.ts';
import type { StatePart } from '../../wire/turn-state.ts';
import type { CallIds } from '../calls/call-ids.ts';
import type { ChannelType } from '../channel-type.ts';
import type { Dialect, Repeat, RequestSettings, SentBody } from '../dialect.ts';
import type { UpstreamRequest } from '../exchange.ts';
import type { KnownTexts } from '../errors/withheld-texts.ts';
import type { Quirks } from '../quirks.ts';
import { boundedBody, permittedCall } from '../restricted-fields.ts';
import { quirksOf, upstreamModel, type CalledChannel } from './channel-quirks.ts';
import { lostFields } from './channel-lost-fields.ts';
import { channelTypes, type OwnAttributeName } from './channel-types.ts';

export interface ChannelCall {
  dialect: Dialect;
  call: CanonicalCall;
  /** The public model name. */
  model: string;
  /** Undefined: the channel has no secret. */
  secret: string | undefined;
  /** See RequestSettings. */
  outputTokensLimit?: number | undefined;
  outputTokensDefault: number;
  states: ReadonlyMap<ChatMessage, readonly StatePart[]>;
  foreign?: ReadonlySet<ChatMessage> | undefined;
  callIds: CallIds;
  without: ReadonlySet<Repeat>;
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

const withoutLimit = <Settings extends Pick<ChannelCall, 'without'>>(settings: Settings): Settings => ({
  ...settings,
  without: new Set<Repeat>([...settings.without, 'limit']),
});

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
  const { carriesItems } = written;
  const dropped = [...permitted.dropped, ...written.dropped, ...lowered];
  const lost = lostFields(asked, { body, dropped, drop, set, carriesItems });
  return { ...written, body, isMultiplied, dropped: lost };
}

/** Throws CannotCarry. */
export function channelRequest(channel: CalledChannel, asked: ChannelCall): BuiltRequest {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  const model = upstreamModel(channel, asked.model);
  const { dialect, secret } = asked;
  const { params } = channel;
  const quirks = { ...quirksOf(channel, asked.model), ...asked.learned };
  const settings = {
    model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.reportsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: params.max_output_tokens,
    outputTokensLimit: asked.outputTokensLimit,
    outputTokensDefault: asked.outputTokensDefault,
    limitField: channel.max_tokens_field ?? type.limitField(channel),
    allow: params.allow,
    quirks,
    apiVersion: type.apiVersion?.(channel),
    states: asked.states,
    foreign: asked.foreign,
    callIds: asked.callIds,
    without: asked.without,
  };
  const dropsUnknown = params.unknown_fields === 'drop';
  const usual = sentBody(dialect, asked.call, { ...settings, dropsUnknown });
  const { outputTokensMax = 0, limitIsLeast = false } = usual;
  const isRefused = outputTokensMax >= (asked.refusedLimit ?? Infinity) && !limitIsLeast;
  const sent = isRefused ? sentBody(dialect, asked.call, { ...withoutLimit(settings), dropsUnknown }) : usual;
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
