import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

interface ListedChannel {
  id: string;
  state: 'on' | 'off' | 'bad';
  priority?: number;
  weight?: number;
  models?: string[];
  endpoint?: string;
  secret?: string[];
  problem?: string;
  warning?: string;
}

export async function listChannels(session: Session): Promise<void> {
  const rows = await session.tables.scan('channels');
  const channels = rows.map((raw) => listed(raw, session.target)).toSorted(inOrderOfTrial);
  if (session.json) return sayJson(channels);
  if (channels.length === 0) return say('no channels: see `npm run ops -- channel add --help`');
  sayTable(channels);
}

function listed(raw: RawRow, rules: { local: boolean }): ListedChannel {
  const id = String(raw['id']);
  const reading = readChannel(raw, rules);
  // Nothing else of a bad row is shown: a secret may have been typed into the wrong attribute.
  if ('problem' in reading) return { id, state: 'bad', problem: reading.problem };
  const { row, warning } = reading;
  return {
    id,
    state: row.state ? 'on' : 'off',
    priority: row.priority,
    weight: row.weight,
    models: row.models,
    endpoint: row.endpoint,
    secret: secretsOf(row),
    ...(warning !== undefined && { warning }),
  };
}

function sayTable(channels: ListedChannel[]): void {
  sayColumns([
    ['ID', 'STATE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'MODELS'],
    ...channels.map((channel) => [
      channel.id,
      channel.state,
      String(channel.priority ?? '-'),
      String(channel.weight ?? '-'),
      channel.endpoint ?? '-',
      channel.secret?.join(' ') || '-',
      channel.models?.join(' ') || '-',
    ]),
  ]);
  for (const { id, problem, warning } of channels) {
    if (problem !== undefined) remark(`${id} is not used: ${problem}`);
    if (warning !== undefined) remark(`${id}: ${warning}`);
  }
}

/** As the relay tries them; bad rows last. */
function inOrderOfTrial(a: ListedChannel, b: ListedChannel): number {
  const difference = (b.priority ?? -Infinity) - (a.priority ?? -Infinity);
  if (difference !== 0 && !Number.isNaN(difference)) return difference;
  return compareCodeUnits(a.id, b.id);
}
