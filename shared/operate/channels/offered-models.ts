/** Lists the models that an upstream offers, for a channel that is not written yet. */
import { readChannel } from '../../config/compile/read-channel.ts';
import { Failure, usable } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { channelRowOf, type ChannelInput } from './add-channel.ts';
import { listUpstreamModels, type UpstreamModels } from './upstream-models.ts';

/**
 * Returns no names, and a warning with the reason, if the models cannot be listed.
 * @param secret the upstream's key; undefined: the upstream needs none, or the key cannot be read here
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
