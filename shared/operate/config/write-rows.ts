/** Writes changes of the configuration to its tables, and waits until they are published. */
import type { Pointer } from '../../adapters/dynamodb/runtime/runtime-items.ts';
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import { attributeChanges, changesBetween, type RowChange } from './row-changes.ts';
import { nameOf } from './findings.ts';
import { Failure } from '../operator-failure.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { say } from '../../../infra/ops/cli/terminal/terminal.ts';

/** Prices before the channels whose models they price: until then a call would be free. */
const writeOrder: ConfigTable[] = ['charges', 'plans', 'settings', 'channels'];

/**
 * Writes what differs and nothing else of a row, as long as nobody changed that meanwhile.
 * @param raw the rows that the changes start from, as the tables have them
 */
export async function writeChanges(session: Session, changes: RowChange[], raw: ConfigRows): Promise<void> {
  const inOrder = [
    ...writeOrder.flatMap((table) => changes.filter((each) => each.table === table && each.after)),
    ...writeOrder
      .toReversed()
      .flatMap((table) => changes.filter((each) => each.table === table && !each.after)),
  ];
  const progress = new Progress('rows written');
  for (const [index, change] of inOrder.entries()) {
    if (!(await writeChange(session, change, raw)))
      throw new Failure(
        `${nameOf(change)} was changed by somebody else meanwhile; ${index} of ${inOrder.length} rows are written. ` +
          'Repeat the command: it shows what still differs',
      );
    progress.add(1);
  }
}

async function writeChange({ tables }: Session, change: RowChange, raw: ConfigRows): Promise<boolean> {
  const { table, before, after } = change;
  const keyName = keyAttributes[table];
  const key = { [keyName]: change.key };
  if (before === undefined) return tables.create(table, after ?? key);
  const row = raw[table].find((each) => attributeOf(each, keyName) === change.key) as RawRow;
  const valuesOf = (names: string[]): RawRow => Object.fromEntries(names.map((name) => [name, row[name]]));
  if (after === undefined) {
    const names = Object.keys(row).filter((name) => name !== keyName && !name.startsWith('_'));
    return tables.remove(table, key, valuesOf(names));
  }
  const attributes = attributeChanges(change);
  const written = Object.fromEntries(attributes.map(({ name, after: value }) => [name, value]));
  return tables.update(table, key, written, valuesOf(Object.keys(written)));
}

const pauseMs = 300;

/** Waits until the newest snapshot was made of the rows that the tables have. Throws a Failure when it takes longer. */
export async function awaitPublished(session: Session, waitSeconds: number): Promise<void> {
  if (waitSeconds <= 0) return say('live within 10 seconds.');
  const untilMs = Date.now() + waitSeconds * 1000;
  let seen: number | undefined;
  for (;;) {
    const newest = await session.config.newest();
    if (newest && newest.version !== seen && (await isPublished(session, newest)))
      return say(
        `version ${newest.version} is published (${isoTime(newest.publishedAt * 1000)}); live within 10 seconds.`,
      );
    seen = newest?.version;
    if (Date.now() + pauseMs > untilMs)
      throw new Failure(
        `the rows are written, but nothing was published of them within ${waitSeconds} s: ` +
          'see `config show`, and the log of the function `config`',
      );
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Whether a snapshot was made of the rows that the tables have now. */
export async function isPublished({ config, target }: Session, pointer: Pointer): Promise<boolean> {
  const [published, tables] = await Promise.all([config.rows(pointer), config.tables()]);
  const options = { local: target.local, publishedAt: 0, earlier: published };
  return changesBetween(published, compileSnapshot(tables, options).rows).length === 0;
}
