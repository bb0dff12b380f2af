import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { chatToUpstream } from '../../upstreams/dialects/chat/request.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import { channelTypes } from '../../upstreams/channel-type.ts';
import type { UpstreamRequest } from '../../upstreams/exchange.ts';

export interface ChannelCall {
  request: ChatRequest;
  /** The upstream's name of the model. */
  model: string;
  /** Undefined: the channel has none. */
  secret: string | undefined;
  /** See UpstreamDialect. */
  outputTokensLimit?: number | undefined;
}

/** A client's request as one channel is to be sent it: address, headers, body, and whether it has to be signed. */
export function channelRequest(channel: ChannelRow, call: ChannelCall): UpstreamRequest {
  const type = channelTypes[channel.type];
  const { params } = channel;
  const body = chatToUpstream(type.adjust?.(call.request) ?? call.request, {
    model: call.model,
    stream: params.stream,
    includeUsage: params.include_usage && (type.tellsUsage?.(channel) ?? true),
    set: params.set,
    drop: params.drop,
    maxOutputTokens: params.max_output_tokens,
    outputTokensLimit: call.outputTokensLimit,
    limitField: channel.max_tokens_field ?? type.limitField(channel),
    allow: params.allow,
  });
  const awsScope = type.awsScope?.(channel);
  return {
    url: type.address(channel, call.model),
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream, application/json',
      ...(call.secret === undefined ? {} : type.credentials(call.secret)),
    },
    body: JSON.stringify(body),
    connectTimeoutMs: channel.connect_seconds * 1000,
    ...(awsScope && { awsScope }),
  };
}
