import { storedEndpoint } from '../../upstreams/types/channel-attributes.ts';
import type { ChannelRow } from '../rows/channel-row.ts';
import { usualFirstContentSeconds } from '../snapshot.ts';

/** A row as a snapshot holds it. The version before this one reads it, too, while an upgrade runs. */
export function storedChannel(row: ChannelRow): ChannelRow {
  const { first_content_seconds: own } = row;
  const [usual] = usualFirstContentSeconds;
  return {
    ...row,
    endpoint: storedEndpoint(row),
    first_content_seconds: own ?? usual,
    ...(own !== undefined && { own_first_content: true }),
  };
}
