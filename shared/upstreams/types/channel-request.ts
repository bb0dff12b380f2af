/**
 * Builds the request of a call to one channel: URL, headers, body, and whether it is signed. Sends nothing.
 */
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { JsonRecord } from '../../wire/json-record.ts';
import type { ChannelAttributes } from '../channel-type.ts';
import type { Dialect, LimitField } from '../dialect.ts';
import type { UpstreamRequest } from '../exchange.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './channel-types.ts';

/** The attributes of a channel's row that a request needs. */
export type CalledChannel = ChannelAttributes<OwnAttributeName> & {
  type: ChannelTypeName;
  mapper: Record<string, string>;
  connect_seconds: number;
  max_tokens_field?: LimitField | undefined;
  params: {
    set: JsonRecord;
    drop: string[];
    allow: string[];
    max_output_tokens?: number | undefined;
    stream: boolean;
    include_usage: boolean;
  };
};

export interface ChannelCall {
  dialect: Dialect;
  request: ChatRequest;
  /** The public model name. */
  model: string;
  /** Undefined: the channel has no secret. */
  secret: string | undefined;
  /** See RequestSettings. */
  outputTokensLimit?: number | undefined;
}

/** The upstream's name of a model. */
export const upstreamModel = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

export function channelRequest(channel: CalledChannel, call: ChannelCall): UpstreamRequest {
  const type = channelTypes[channel.type];
  const model = upstreamModel(channel, call.model);
  const { dialect, secret } = call;
  const { params } = channel;
  const body = dialect.body(type.adjust?.(call.request) ?? call.request, {
    model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.reportsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: params.max_output_tokens,
    outputTokensLimit: call.outputTokensLimit,
    limitField: channel.max_tokens_field ?? type.limitField(channel),
    allow: params.allow,
  });
  const awsScope = type.awsScope?.(channel);
  return {
    url: type.address?.(channel, { model, path: dialect.path }) ?? `${channel.endpoint}${dialect.path}`,
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream, application/json',
      ...(secret === undefined ? {} : type.credentials(secret)),
    },
    body: JSON.stringify(body),
    connectTimeoutMs: channel.connect_seconds * 1000,
    ...(awsScope && { awsScope }),
  };
}
