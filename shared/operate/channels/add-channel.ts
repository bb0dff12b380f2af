/** Adds a channel or overwrites one. Refuses a row that the relay would not use. */
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import { isOfStack } from '../../config/rows/secret-reference.ts';
import type { OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { usable, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts, Target } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { channelWarnings } from '../config/planned-warnings.ts';

export interface ChannelInput {
  id: string;
  models: string[];
  type?: string;
  endpoint?: string;
  /** Attributes that only some channel types have, by their names in rows. */
  attributes?: Partial<Record<OwnAttributeName, string>>;
  name?: string;
  secret?: string;
  priority?: number;
  weight?: number;
  mapper?: Record<string, string>;
  disabled?: boolean;
}

/** What to do if a row with the id exists. `keep-same`: accept an identical row, refuse any other. */
export type WhenTaken = 'refuse' | 'replace' | 'keep-same';

export interface AddChannelPlan extends Plan<RowWrite> {
  /** The relay's warnings about the new row. */
  warnings: string[];
}

export async function planAddChannel(
  { tables, target }: Pick<OperatorPorts, 'tables' | 'target'>,
  input: ChannelInput,
  whenTaken: WhenTaken,
): Promise<AddChannelPlan> {
  const { id } = input;
  const row = channelRowOf(input);
  const { row: read, warning } = checkRow(target, row);
  const conflict = usageFailure(
    whenTaken === 'keep-same'
      ? `nothing was written: there is a channel ${id} already; choose another --id`
      : `there is a channel ${id} already: choose another --id, or add --replace`,
  );
  const replace = whenTaken === 'replace';
  const there = replace ? undefined : await tables.get('channels', id);
  const isSame = there !== undefined && canonicalJson(plainRow(there)) === canonicalJson(row);
  if (there !== undefined && !(whenTaken === 'keep-same' && isSame)) throw conflict;
  return {
    changes: isSame ? [] : [{ kind: replace ? 'replace' : 'create', table: 'channels', row, conflict }],
    effect: [`channel ${id} is written, switched ${read.state ? 'on' : 'off'}; live within 10 seconds.`],
    questions: replace ? [`Write over the channel ${id}, if there is one, with all its attributes?`] : [],
    warnings: warning === undefined ? [] : [warning],
  };
}

/** As `planAddChannel`, with what the relay will warn of beside the rows that are there. */
export async function planNewChannel(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'tables' | 'target'>,
  input: ChannelInput,
  whenTaken: WhenTaken,
): Promise<AddChannelPlan> {
  const plan = await planAddChannel(ports, input, whenTaken);
  return { ...plan, warnings: await channelWarnings(ports, channelRowOf(input)) };
}

export function channelRowOf(input: ChannelInput): RawRow {
  const { id, models, type, endpoint, attributes, name, secret, priority, weight, mapper } = input;
  const given = { type, endpoint, ...attributes, name, secret, priority, weight, mapper };
  return {
    id,
    models,
    state: !input.disabled,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

/** Parses a new row as the relay does. Throws a Failure if the relay would not use it. */
function checkRow({ stack, ...target }: Target, row: RawRow): { row: ChannelRow; warning?: string } {
  const reading = usable(readChannel(row, target), 'nothing was written: ');
  const foreign = secretsOf(reading.row).find((reference) => !isOfStack(reference, stack));
  if (foreign === undefined) return reading;
  throw usageFailure(
    `nothing was written: stack ${stack} may not read ${foreign}, only ssm:/relay/${stack}/... and secretsmanager:${stack}/...`,
  );
}
