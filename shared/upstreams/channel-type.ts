/**
 * What differs between types of channels while a request is answered. This file names no type; the registry
 * is types/channel-types.ts. The facts about each type and their sources are in docs/channels.md.
 */
import type { UpstreamError } from './upstream-failure.ts';
import type { AwsScope } from './exchange.ts';
import type { Quirks } from './quirks.ts';

/** The attributes of a channel's row that types read. `Own` are those that only this type has. */
export type ChannelAttributes<Own extends string = never> = {
  /** The base address, checked and without a slash at its end; empty if the row has none. */
  endpoint: string;
  secret?: string | string[] | undefined;
} & { readonly [name in Own]?: string | undefined };

export interface ChannelType<Own extends string = never> {
  /** The dialect of a model for a row that names none. `model`: the upstream's name. Absent: the default. */
  dialect?(model: string): string;
  /**
   * Other dialects that endpoints of this type may speak. A refusal that names one's path is repeated in it. Absent: none.
   */
  alsoSpeaks?: readonly string[];
  /** The URL of a request. Absent: the base address followed by the dialect's path. */
  address?(channel: ChannelAttributes<Own>, call: AddressedCall): string;
  /**
   * The headers that carry the secret. Names are in lower case. `dialect`: the name of the dialect that is spoken;
   * absent: none, as when models are listed.
   */
  credentials: (secret: string, channel: ChannelAttributes<Own>, dialect?: string) => Record<string, string>;
  /** The media types of answers, for upstreams with a framing of their own. Absent: server-sent events and JSON. */
  accept?: string;
  /** Replaces credentials: requests are signed with the function's own role for this service and region. */
  awsScope?(channel: ChannelAttributes<Own>): AwsScope;
  /** How a model of this type differs from its dialect, unless the row says otherwise. Absent: not at all. */
  quirks?(channel: ChannelAttributes<Own>, model: string): Partial<Quirks>;
  /** The version of the API, for dialects that send one. Absent: the dialect's own. */
  apiVersion?(channel: ChannelAttributes<Own>): string | undefined;
  /** The field for a token limit that the client did not set. */
  limitField(channel: ChannelAttributes<Own>): string;
  /** Whether the upstream accepts a request for the usage of a stream. Absent: it does. */
  reportsUsage?(channel: ChannelAttributes<Own>): boolean;
  /** Finds errors that our secret or the row causes although the status blames the caller. */
  ownFault?(status: number, error: UpstreamError): 'secret' | 'channel' | undefined;
}

export interface AddressedCall {
  /** The upstream's name of the model. */
  model: string;
  /** The name of the dialect. */
  dialect: string;
  /** The dialect's path. */
  path: string;
}

/** The credentials of most vendors. */
export const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
