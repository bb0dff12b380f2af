import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { readChannel } from '../../config/compile/read-channel.ts';
import { putOver } from '../config/check-rows.ts';
import { channelSecret } from './channel-secret.ts';
import { findingsIn } from '../config/findings.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { confirm, remark, say, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';
import { listUpstreamModels, namesLike } from './upstream-models.ts';

export interface SyncOptions {
  /** Names of models to add; `*` stands for anything. */
  only?: string[];
  keep?: boolean;
  secretEnv?: string;
  dryRun?: boolean;
  yes?: boolean;
}

/** Makes a channel's list of models that of its upstream: shows the difference, asks, writes. */
export async function syncChannel(session: Session, id: string, options: SyncOptions): Promise<void> {
  const raw = await session.tables.get('channels', id);
  if (raw === undefined) throw usageFailure(`there is no channel ${id}: see \`channel list\``);
  const reading = readChannel(raw, session.target);
  if ('problem' in reading) throw new Failure(`channel ${id} is not used: ${reading.problem}`);
  const secret = await channelSecret(session, reading.row, options.secretEnv);
  const listed = await listUpstreamModels(reading.row, secret);
  const difference = differenceOf(reading.row, listed, options);
  report(session, difference, listed.length);
  if (difference.added.length + difference.removed.length === 0) return;
  if (difference.models.length === 0)
    throw new Failure('nothing was written: no model would be left; is this the right upstream and key?');
  await warn(session, raw, difference);
  if (options.dryRun) return remark('nothing was written: --dry-run');
  await confirm(`Write these models to the channel ${id}?`, options);
  await write(session, raw, difference);
}

interface Difference {
  /** Public names. */
  added: string[];
  removed: string[];
  models: string[];
  /** undefined: the row has none, or it stays. */
  mapper: ChannelRow['mapper'] | undefined;
}

/** A public name is there as long as the upstream's name for it is. */
function differenceOf(
  { models, mapper }: ChannelRow,
  listed: string[],
  { only = ['*'], keep = false }: SyncOptions,
): Difference {
  const upstreamName = (model: string): string =>
    (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;
  const served = new Set([...models, ...models.map(upstreamName)]);
  const added = namesLike(only, listed).filter((name) => !served.has(name));
  const removed = keep ? [] : models.filter((model) => !listed.includes(upstreamName(model)));
  const mapped = Object.entries(mapper).filter(([model]) => !removed.includes(model));
  return {
    added,
    removed,
    models: [...models.filter((model) => !removed.includes(model)), ...added],
    mapper: mapped.length < Object.keys(mapper).length ? Object.fromEntries(mapped) : undefined,
  };
}

function report(session: Session, { added, removed, models }: Difference, listed: number): void {
  if (session.json) return sayJson({ added, removed, models });
  for (const model of added) say(`+ ${model}`);
  for (const model of removed) say(`- ${model}`);
  const none = added.length + removed.length === 0 ? '; nothing to write' : '';
  say(`the upstream lists ${listed} models: ${added.length} to add, ${removed.length} to remove${none}.`);
}

async function warn(session: Session, raw: RawRow, { models, mapper }: Difference): Promise<void> {
  const row = { ...raw, models, ...(mapper && { mapper }) };
  const rows = putOver(await session.config.tables(), { channels: [row] });
  for (const { table, key, warning } of findingsIn(rows, session.target))
    if (table === 'channels' && key === raw['id'] && warning !== undefined) remark(`warning: ${warning}`);
}

async function write(session: Session, raw: RawRow, { models, mapper }: Difference): Promise<void> {
  const { id } = raw;
  const unchanged = { models: raw['models'], mapper: raw['mapper'] };
  if (!(await session.tables.update('channels', { id }, { models, ...(mapper && { mapper }) }, unchanged)))
    throw new Failure('nothing was written: somebody changed the row meanwhile; repeat the command');
  remark(`${models.length} models are written; live within 10 seconds.`);
}
