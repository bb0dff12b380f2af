/**
 * What differs between types of channels while a request is answered. Names no type: the registry is
 * types/channel-types.ts. The facts behind each type and their sources are in docs/channels.md.
 */
import type { ChatRequest } from '../wire/chat-request.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { AwsScope } from './exchange.ts';

/** The attributes of a channel's row that types read, `Own` being those that only this type has. */
export type ChannelAttributes<Own extends string = never> = {
  /** The base address, checked and without a slash at its end; empty in a row that writes none. */
  endpoint: string;
  secret?: string | string[] | undefined;
} & { readonly [name in Own]?: string | undefined };

export interface ChannelType<Own extends string = never> {
  /** Where a request goes; absent: to the base address with the dialect's path behind it. */
  address?(channel: ChannelAttributes<Own>, call: { model: string; path: string }): string;
  /** Headers, names in lower case. */
  credentials: (secret: string) => Record<string, string>;
  /** Instead of credentials: requests are signed with the function's own role, for this service and region. */
  awsScope?(channel: ChannelAttributes<Own>): AwsScope;
  /** The client's request as this type of upstream accepts it; `params.set` of the row comes after. */
  adjust?(request: ChatRequest): ChatRequest;
  /** The field for a limit that the client did not set. */
  limitField(channel: ChannelAttributes<Own>): string;
  /** Whether a stream may be asked for its usage; absent: it may. */
  reportsUsage?(channel: ChannelAttributes<Own>): boolean;
  /** For errors whose status says that the caller is at fault, but which are about our secret or the row. */
  ownFault?(status: number, error: JsonRecord): 'secret' | 'channel' | undefined;
}

/** The credentials of most vendors. */
export const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
