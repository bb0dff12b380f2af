import type { ChannelRow } from '../config/rows/channel-row.ts';
import type { LimitField } from './dialects/chat/request.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import { anthropic } from './types/anthropic.ts';
import { azure } from './types/azure.ts';
import { bedrock } from './types/bedrock.ts';
import { gemini } from './types/gemini.ts';
import { openai } from './types/openai.ts';
import type { AwsScope } from './exchange.ts';

/**
 * What differs between kinds of upstream that speak OpenAI's Chat Completions. The facts behind each type and their
 * sources are in docs/channels.md.
 */
export interface ChannelType {
  /** Where a request goes. The row's `endpoint` is checked and has no slash at its end. */
  address(channel: ChannelRow, upstreamModel: string): string;
  /** Headers, names in lower case. */
  credentials(secret: string): Record<string, string>;
  /** Instead of credentials: requests are signed with the function's own role, for this service and region. */
  awsScope?(channel: ChannelRow): AwsScope;
  /** The client's request as this kind of upstream accepts it; `params.set` of the row comes after. */
  adjust?(request: ChatRequest): ChatRequest;
  /** The field for a limit that the client did not set. */
  limitField(channel: ChannelRow): LimitField;
  /** Whether a stream may be asked for its usage; absent: it may. */
  tellsUsage?(channel: ChannelRow): boolean;
  /** For errors whose status says that the caller is at fault, but which are about our secret or the row. */
  ownFault?(status: number, error: JsonRecord): 'secret' | 'channel' | undefined;
}

export const channelTypes: Record<ChannelRow['type'], ChannelType> = {
  openai,
  azure,
  bedrock,
  anthropic,
  gemini,
};
