/**
 * Builds the request of a call to one channel: URL, headers, body, and whether it is signed. Sends nothing.
 */
import type { CanonicalCall } from '../../wire/canonical-call.ts';
import type { ChatMessage } from '../../wire/chat-request.ts';
import type { JsonRecord } from '../../wire/json-record.ts';
import type { StatePart } from '../../wire/turn-state.ts';
import type { CallIds } from '../calls/call-ids.ts';
import type { ChannelAttributes, ChannelType } from '../channel-type.ts';
import type { Dialect, Repeat, RequestSettings, SentBody } from '../dialect.ts';
import { defaultDialect } from '../dialects/dialects.ts';
import type { UpstreamRequest } from '../exchange.ts';
import type { KnownTexts } from '../errors/withheld-texts.ts';
import type { LimitField, Quirks, unknownFieldChoices } from '../quirks.ts';
import { boundedBody, permittedCall } from '../restricted-fields.ts';
import { channelQuirks, type QuirkParams } from './channel-quirks.ts';
import { lostFields } from './channel-lost-fields.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './channel-types.ts';

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

/** The upstream's name of a model. */
export const upstreamModel = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

/** The dialect that a channel speaks for a model: the row's choice, else its type's. `model`: the public name. */
export function dialectOf(channel: CalledChannel, model: string): string {
  const { dialect } = channel;
  const chosen =
    typeof dialect === 'object' ? (Object.hasOwn(dialect, model) ? dialect[model] : undefined) : dialect;
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return chosen ?? type.dialect?.(upstreamModel(channel, model)) ?? defaultDialect;
}

/** How a channel differs from its dialect for a model. `model`: the public name. */
export const quirksOf = (channel: CalledChannel, model: string): Quirks =>
  channelQuirks(channel, upstreamModel(channel, model));

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
  const dropped = [...permitted.dropped, ...written.dropped, ...lowered];
  return { ...written, body, isMultiplied, dropped: lostFields(asked, { body, dropped, drop, set }) };
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
