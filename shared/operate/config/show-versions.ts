import type { Pointer } from '../../relay/ports/config-store.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { snapshotFormat, type Snapshot } from '../../config/snapshot.ts';
import { chargeCells, chargeHead } from '../prices/list-charges.ts';
import { isPublished } from './write-rows.ts';
import { Failure } from '../operator-failure.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface ShowOptions {
  version?: number;
  /** How many versions are listed. */
  limit: number;
}

/** Lists the versions, or shows what one of them serves. */
export async function showConfig(session: Session, { version, limit }: ShowOptions): Promise<void> {
  if (version === undefined) return listVersions(session, limit);
  const pointer = await session.config.version(version);
  if (pointer.format !== snapshotFormat)
    throw new Failure(
      `version ${version} is in a form that this tool does not know: use the tool of its time`,
    );
  const snapshot = await session.config.snapshot(pointer);
  if (session.json) sayJson(snapshot);
  else saySnapshot(snapshot, (await session.config.rows(pointer)).settings);
}

async function listVersions(session: Session, limit: number): Promise<void> {
  const { config } = session;
  const newest = await config.newest();
  if (!newest) {
    if (session.json) return sayJson([]);
    return say('nothing was published yet: the relay serves no model');
  }
  const progress = new Progress('versions read');
  const listed: { pointer: Pointer; rows: ConfigRows }[] = [];
  const versions = await config.versions();
  for (const pointer of versions.slice(0, limit)) {
    listed.push({ pointer, rows: await config.rows(pointer) });
    progress.add(1);
  }
  if (session.json) sayJson(listed.map((each) => versionJson(each.pointer, each.rows)));
  else
    sayColumns([
      ['VERSION', 'PUBLISHED', 'CHANNELS', 'CHARGES', 'PLANS', 'SETTINGS'],
      ...listed.map(versionCells),
    ]);
  if (!session.json) say(`version ${newest.version} is served.`);
  if (versions.length > limit) remark(`${versions.length} versions are kept: see --limit`);
  if (!(await isPublished(session, newest)))
    remark('The tables hold edits that are not published: within seconds they are, see `config diff`.');
}

const versionCells = ({ pointer, rows }: { pointer: Pointer; rows: ConfigRows }): string[] => [
  String(pointer.version),
  isoTime(pointer.publishedAt * 1000),
  String(rows.channels.length),
  String(rows.charges.length),
  String(rows.plans.length),
  String(rows.settings.length),
];

const versionJson = (pointer: Pointer, rows: ConfigRows) => ({
  version: pointer.version,
  published_at: pointer.publishedAt,
  format: pointer.format,
  digest: pointer.digest,
  rows: Object.fromEntries(Object.entries(rows).map(([table, list]) => [table, list.length])),
});

function saySnapshot(snapshot: Snapshot, settings: unknown[]): void {
  const { version, publishedAt, channels, charges, plans, models } = snapshot;
  say(`version ${version}, published ${isoTime(publishedAt * 1000)}`);
  say(`models: ${models.join(' ') || 'none'}`);
  say('');
  sayColumns([
    ['CHANNEL', 'TYPE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'MODELS'],
    ...channels.map((channel) => [
      channel.id,
      channel.type,
      String(channel.priority),
      String(channel.weight),
      channel.endpoint,
      secretsOf(channel).join(' ') || '-',
      channel.models.join(' '),
    ]),
  ]);
  say('');
  sayColumns([chargeHead, ...charges.map(chargeCells)]);
  say('');
  sayColumns([
    ['PLAN', 'PRICE', 'ENTRIES'],
    ...plans.map(({ level, price, items }) => [
      String(level),
      String(price),
      items.map(({ id, value }) => `${id} ${value < 0 ? 'unlimited' : value}`).join(', '),
    ]),
  ]);
  say('');
  sayColumns([
    ['SETTING', 'VALUE'],
    ...settings.map((row) => [String(attributeOf(row, 'name')), JSON.stringify(attributeOf(row, 'value'))]),
  ]);
}
