import type { ChannelRow } from '../config/channel-row.ts';
import { openai } from './channel-types/openai.ts';

/** What differs between kinds of upstream: where the request goes and how it is authorized. */
export interface ChannelType {
  address(channel: ChannelRow, upstreamModel: string): string;
  /** Headers, names in lower case. */
  credentials(secret: string): Record<string, string>;
}

export const channelTypes: Record<ChannelRow['type'], ChannelType> = { openai };
