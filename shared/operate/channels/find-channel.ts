/** Finds the channel that an operator names, and reads its secret. Shows no value of a row with a problem. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

export interface FoundChannel {
  /** The row as read from the table. */
  raw: RawRow;
  channel: ChannelRow;
  warnings: string[];
}

/** Throws a Failure if there is no such channel, or if the relay would not use its row. */
export async function findChannel(
  { tables, target }: Pick<OperatorPorts, 'tables' | 'target'>,
  id: string,
): Promise<FoundChannel> {
  const raw = await tables.get('channels', id);
  if (raw === undefined) throw usageFailure(`there is no channel ${id}: see \`channel list\``);
  const reading = readChannel(raw, target);
  if ('problem' in reading) throw new Failure(`channel ${id} is not used: ${reading.problem}`);
  return { raw, channel: reading.row, warnings: reading.warning === undefined ? [] : [reading.warning] };
}

/** The rows that the relay uses as they are. */
export const usableChannels = (rows: readonly unknown[], rules: { local: boolean }): ChannelRow[] =>
  rows.flatMap((raw) => {
    const reading = readChannel(raw, rules);
    return 'problem' in reading ? [] : [reading.row];
  });

/** A public name that the channel serves: the wanted one, else its first. Throws a Failure if there is none. */
export function servedModel({ id, models }: ChannelRow, wanted: string | undefined): string {
  const model = wanted ?? models[0];
  if (model !== undefined && models.includes(model)) return model;
  throw usageFailure(`channel ${id} serves ${models.join(', ') || 'no model'}: choose one with --model`);
}

/** Throws a Failure for a channel whose requests only the functions can sign. */
export function refuseRoleSigned({ type }: ChannelRow): void {
  if (channelTypes[type].awsScope)
    throw new Failure(
      `channels of the type ${type} are called with the functions' own role, which this tool does not have: call the relay`,
    );
}

/**
 * Reads the channel's first key; undefined: it has none. Throws a Failure if the key cannot be read.
 * @param secretEnv the environment variable that contains the key; overrides the row's reference
 */
export async function channelSecret(
  { secrets }: Pick<OperatorPorts, 'secrets'>,
  channel: ChannelRow,
  secretEnv: string | undefined,
): Promise<string | undefined> {
  if (secretEnv !== undefined) return secrets.variable(secretEnv);
  const [reference] = secretsOf(channel);
  return reference === undefined ? undefined : secrets.read(reference);
}
