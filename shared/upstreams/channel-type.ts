/**
 * What differs between types of channels while a request is answered. This file names no type; the registry
 * is types/channel-types.ts. The facts about each type and their sources are in docs/channels.md.
 */
import type { ChatRequest } from '../wire/chat-request.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { AwsScope } from './exchange.ts';

/** The attributes of a channel's row that types read. `Own` are those that only this type has. */
export type ChannelAttributes<Own extends string = never> = {
  /** The base address, checked and without a slash at its end; empty if the row has none. */
  endpoint: string;
  secret?: string | string[] | undefined;
} & { readonly [name in Own]?: string | undefined };

export interface ChannelType<Own extends string = never> {
  /** The URL of a request. Absent: the base address followed by the dialect's path. */
  address?(channel: ChannelAttributes<Own>, call: { model: string; path: string }): string;
  /** The headers that carry the secret. Names are in lower case. */
  credentials: (secret: string) => Record<string, string>;
  /** Replaces credentials: requests are signed with the function's own role for this service and region. */
  awsScope?(channel: ChannelAttributes<Own>): AwsScope;
  /**
   * Converts the client's request to what this type of upstream accepts. `params.set` is applied afterwards.
   */
  adjust?(request: ChatRequest): ChatRequest;
  /** The field for a token limit that the client did not set. */
  limitField(channel: ChannelAttributes<Own>): string;
  /** Whether the upstream accepts a request for the usage of a stream. Absent: it does. */
  reportsUsage?(channel: ChannelAttributes<Own>): boolean;
  /** Finds errors that our secret or the row causes although the status blames the caller. */
  ownFault?(status: number, error: JsonRecord): 'secret' | 'channel' | undefined;
}

/** The credentials of most vendors. */
export const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
