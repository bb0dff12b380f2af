/** Builds the writes for changes of the configuration tables, and waits until the changes are published. */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import type { PublishedVersion } from '../config-versions.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { nameOf, variableMarks } from './findings.ts';
import { attributeChanges, changesBetween, type RowChange } from './row-changes.ts';

/**
 * Prices are written before the channels that serve the priced models; otherwise calls in between would be
 * free.
 */
const writeOrder: ConfigTable[] = ['charges', 'plans', 'settings', 'channels'];

/** Deletions come last, in reverse order. */
const rankOf = ({ table, after }: RowChange): number =>
  after ? writeOrder.indexOf(table) : 2 * writeOrder.length - writeOrder.indexOf(table);

/**
 * Builds writes that change only the attributes that differ, on condition that nobody has changed them since.
 * @param raw the rows that the changes are based on, as read from the tables
 */
export function writesOf(changes: RowChange[], raw: ConfigRows): RowWrite[] {
  const ordered = changes.toSorted((a, b) => rankOf(a) - rankOf(b));
  return ordered.map((change, index) => {
    const conflict = new Failure(
      `${nameOf(change)} was changed by somebody else meanwhile; ${index} of ${ordered.length} rows are written. ` +
        'Repeat the command: it shows what still differs',
    );
    return writeOf(change, raw, conflict);
  });
}

function writeOf(change: RowChange, raw: ConfigRows, conflict: Failure): RowWrite {
  const { table, before, after } = change;
  const keyName = keyAttributes[table];
  const key = { [keyName]: change.key };
  if (before === undefined) return { kind: 'create', table, row: after ?? key, conflict };
  const row = raw[table].find((each) => attributeOf(each, keyName) === change.key) as RawRow;
  const valuesOf = (names: string[]): RawRow => Object.fromEntries(names.map((name) => [name, row[name]]));
  if (after === undefined) {
    const names = Object.keys(row).filter((name) => name !== keyName && !name.startsWith('_'));
    return { kind: 'remove', table, key, unchanged: valuesOf(names), conflict };
  }
  const attributes = Object.fromEntries(
    attributeChanges(change).map(({ name, after: value }) => [name, value]),
  );
  return { kind: 'update', table, key, attributes, unchanged: valuesOf(Object.keys(attributes)), conflict };
}

const pauseMs = 300;

/**
 * Waits until the newest version contains the current rows of the tables. Throws a Failure after
 * `waitSeconds`.
 * @returns that version; undefined if `waitSeconds` is 0, because nothing is read then
 */
export async function awaitPublished(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  waitSeconds: number,
): Promise<PublishedVersion | undefined> {
  if (waitSeconds <= 0) return undefined;
  const { clock, config } = ports;
  const untilMs = clock.now() + waitSeconds * 1000;
  let seen: number | undefined;
  for (;;) {
    const newest = await config.newest();
    if (newest && newest.version !== seen && (await isPublished(ports, newest))) return newest;
    seen = newest?.version;
    if (clock.now() + pauseMs > untilMs)
      throw new Failure(
        `the rows are written, but nothing was published of them within ${waitSeconds} s: ` +
          (variableMarks((await config.tables()).channels, ports.target)
            .map((finding) => `${nameOf(finding)}: ${finding.problem}`)
            .join('; ') || 'see `config show`, and the log of the function `config`'),
      );
    await clock.sleep(pauseMs);
  }
}

/** Whether a version contains the current rows of the tables. */
export async function isPublished(
  { config, target }: Pick<OperatorPorts, 'config' | 'target'>,
  version: PublishedVersion,
): Promise<boolean> {
  const [published, tables] = await Promise.all([config.rows(version), config.tables()]);
  const options = { local: target.local, publishedAt: 0, earlier: published };
  return changesBetween(published, compileSnapshot(tables, options).rows).length === 0;
}
