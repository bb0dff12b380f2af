import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import { usageFailure } from '../operator-failure.ts';
import { isOfStack } from '../../config/rows/secret-reference.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { confirm, remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface AddOptions {
  id: string;
  models: string[];
  type?: string;
  endpoint?: string;
  region?: string;
  apiVersion?: string;
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
  const { state, warning } = checkRow(session, row);
  if (warning !== undefined) remark(`warning: ${warning}`);

  if (options.replace) {
    await confirm(`Write over the channel ${options.id}, if there is one, with all its attributes?`, options);
    await session.tables.replace('channels', row);
  } else if (!(await session.tables.create('channels', row))) {
    throw usageFailure(`there is a channel ${options.id} already: choose another --id, or add --replace`);
  }
  say(`channel ${options.id} is written, switched ${state ? 'on' : 'off'}; live within 10 seconds.`);
  say(`Try it: npm run ops -- channel test ${options.id}`);
}

/** What the relay makes of a new row. Throws a Failure for one that the relay would not use. */
export function checkRow({ target }: Session, row: RawRow): { state: boolean; warning?: string } {
  const reading = readChannel(row, target);
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
  const foreign = secretsOf(reading.row).find((reference) => !isOfStack(reference, target.stack));
  if (foreign !== undefined) {
    const { stack } = target;
    throw usageFailure(
      `nothing was written: stack ${stack} may not read ${foreign}, only ssm:/relay/${stack}/... and secretsmanager:${stack}/...`,
    );
  }
  return { state: reading.row.state, ...(reading.warning !== undefined && { warning: reading.warning }) };
}

export function rowOf(options: AddOptions): RawRow {
  const { id, models, type, endpoint, region, apiVersion, name, secret, priority, weight, mapper } = options;
  const given = { type, endpoint, region, api_version: apiVersion, name, secret, priority, weight, mapper };
  return {
    id,
    models,
    state: !options.disabled,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}
