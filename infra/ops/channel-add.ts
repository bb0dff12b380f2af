import { readChannel, secretsOf } from '../../shared/config/read-channel.ts';
import { usageFailure } from './failure.ts';
import type { Session } from './session.ts';
import type { RawRow } from './tables.ts';
import { confirm, remark, say } from './terminal.ts';

export interface AddOptions {
  id: string;
  endpoint: string;
  models: string[];
  name?: string;
  secret?: string;
  priority?: number;
  weight?: number;
  mapper?: Record<string, string>;
  disabled?: boolean;
  replace?: boolean;
  yes?: boolean;
}

export async function addChannel(session: Session, options: AddOptions): Promise<void> {
  const row = rowOf(options);
  const reading = readChannel(row, session.target);
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
  const foreign = secretsOf(reading.row).find((reference) => !isOfStack(reference, session.target.stack));
  if (foreign !== undefined) {
    const { stack } = session.target;
    throw usageFailure(
      `nothing was written: stack ${stack} may not read ${foreign}, only ssm:/relay/${stack}/... and secretsmanager:${stack}/...`,
    );
  }
  if (reading.warning !== undefined) remark(`warning: ${reading.warning}`);

  if (options.replace) {
    await confirm(`Write over the channel ${options.id}, if there is one, with all its attributes?`, options);
    await session.tables.replace('channels', row);
  } else if (!(await session.tables.create('channels', row))) {
    throw usageFailure(`there is a channel ${options.id} already: choose another --id, or add --replace`);
  }
  const state = reading.row.state ? 'on' : 'off';
  say(`channel ${options.id} is written, switched ${state}; live within 10 seconds.`);
  say(`Try it: npm run ops -- channel test ${options.id}`);
}

/** A function may read the secrets of its own stack alone. */
const isOfStack = (reference: string, stack: string): boolean =>
  ['env:', `ssm:/relay/${stack}/`, `secretsmanager:${stack}/`].some((prefix) => reference.startsWith(prefix));

function rowOf(options: AddOptions): RawRow {
  const { id, endpoint, models, name, secret, priority, weight, mapper } = options;
  const given = { name, secret, priority, weight, mapper };
  return {
    id,
    endpoint,
    models,
    state: !options.disabled,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}
