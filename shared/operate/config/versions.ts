/** Views of published versions of the configuration: listed, one shown, the one that served at a time. */
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ConfigRows, ConfigTable } from '../../config/rows/read-table.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { OperatorPorts, PublishedVersion } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { configTables } from './row-changes.ts';
import { isPublished } from './write-rows.ts';

/** `kept`: retained versions, listed or not. `edited`: the tables contain edits that are not in the newest version. */
export type ListedVersions = Awaited<ReturnType<typeof listVersions>>;

export async function listVersions(ports: OperatorPorts, limit: number) {
  const { config } = ports;
  const versions: (PublishedVersion & { rows: Record<ConfigTable, number> })[] = [];
  const newest = await config.newest();
  if (!newest) return { served: undefined, versions, kept: 0, edited: false };
  const kept = await config.versions();
  for (const version of kept.slice(0, limit)) {
    versions.push({ ...version, rows: countRows(await config.rows(version)) });
  }
  const edited = !(await isPublished(ports, newest));
  return { served: newest.version, versions, kept: kept.length, edited };
}

/** Three requests. */
export const publishedMax = 100;

export async function listPublishedVersions({ config }: OperatorPorts) {
  const versions = await config.versions({ count: publishedMax });
  return { served: versions[0]?.version, versions: versions.slice(0, publishedMax) };
}

const countRows = (rows: ConfigRows): Record<ConfigTable, number> =>
  Object.fromEntries(configTables.map((table) => [table, rows[table].length])) as Record<ConfigTable, number>;

export type ShownVersion = Awaited<ReturnType<typeof showVersion>>;

export async function showVersion({ config }: OperatorPorts, number: number) {
  const version = await config.version(number);
  if (version.format !== snapshotFormat)
    throw new Failure(`version ${number} has an unknown format: use the release of relay-ops that wrote it`);
  const [snapshot, rows] = await Promise.all([config.snapshot(version), config.rows(version)]);
  const settings = rows.settings.map((row) => ({
    name: String(attributeOf(row, 'name')),
    value: attributeOf(row, 'value'),
  }));
  return { snapshot, settings };
}

/** The version that served then. Throws a Failure if none is kept that is so old. */
export async function findVersionAt(
  { config, clock }: OperatorPorts,
  atMs: number,
): Promise<PublishedVersion> {
  if (atMs > clock.now()) throw usageFailure(`--to ${isoTime(atMs)}: use a time in the past`);
  const versions = await config.versions({ sinceMs: atMs });
  const found = versions.find(({ publishedAt }) => publishedAt * 1000 <= atMs);
  if (found) return found;
  const oldest = versions.at(-1);
  throw usageFailure(
    oldest
      ? `no version is kept from ${isoTime(atMs)}: the oldest is version ${oldest.version}, published ${isoTime(oldest.publishedAt * 1000)}`
      : 'no version has been published yet',
  );
}
