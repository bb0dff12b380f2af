/** What the upstream of a channel that is not written yet offers, for the operator to choose from. */
import { readChannel } from '../../config/compile/read-channel.ts';
import { Failure, usable } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { channelRowOf, type ChannelInput } from './add-channel.ts';
import { listUpstreamModels, type UpstreamModels } from './upstream-models.ts';

/**
 * No names, and a warning why, where they cannot be listed.
 * @param secret the upstream's key; undefined: it wants none, or the key cannot be read here
 */
export async function offeredModels(
  ports: Pick<OperatorPorts, 'clock' | 'target' | 'upstreams'>,
  input: Omit<ChannelInput, 'models'>,
  secret: string | undefined,
): Promise<UpstreamModels> {
  const { row } = usable(readChannel(channelRowOf({ ...input, models: [] }), ports.target));
  try {
    return await listUpstreamModels(ports, row, secret);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { names: [], warnings: [error.message] };
  }
}
