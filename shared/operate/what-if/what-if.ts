/** Reads what an edit would have made of the last days: the rows of a file, or of a form, put over those of the tables. */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { nameOf, type Finding } from '../config/findings.ts';
import { configTables } from '../config/row-changes.ts';
import { putOver, readRowsFile, type RowsFile } from '../config/rows-file.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { DayRange, ServedDay } from '../sum-reader.ts';
import { editEffects, type EditEffects } from './edit-effects.ts';
import { chargesSince, isPriceKnown } from './price-history.ts';
import { daysBack, runningEmpty, type RunningEmpty } from './running-empty.ts';

/** Today is one of them. */
const dayCount = 7;

export interface WhatIf extends EditEffects {
  days: DayRange;
  /** The prices of then are compared: now, or when the last of the edited rules begins. */
  atMs: number;
  accounts: RunningEmpty;
  /** Rows of the edit that would not be used. */
  problems: Finding[];
  /** What could not be read. */
  unreadable: string[];
}

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'ledger' | 'target'>;

/** @param prune without the rows that the file lacks, in the tables that it names */
export async function whatIfFile(
  ports: Ports,
  file: RowsFile,
  { prune }: { prune?: boolean } = {},
): Promise<WhatIf> {
  const rows = readRowsFile(file, configTables);
  const tables = await ports.config.tables();
  return whatIf(ports, { before: tables, after: prune ? { ...tables, ...rows } : putOver(tables, rows) });
}

export async function whatIf(ports: Ports, edit: { before: ConfigRows; after: ConfigRows }): Promise<WhatIf> {
  const { clock, config, ledger, target } = ports;
  const nowMs = clock.now();
  const days = daysBack(nowMs, dayCount);
  const fromMs = Date.parse(`${days.from}T00:00:00Z`);
  const newest = await config.newest();
  const earlier = newest && (await config.rows(newest));
  const options = { local: target.local, publishedAt: Math.floor(nowMs / 1000), ...(earlier && { earlier }) };
  const [before, after] = [compileSnapshot(edit.before, options), compileSnapshot(edit.after, options)];
  const inUse = await chargesSince(ports, fromMs);
  const served: ServedDay[] = [];
  const unreadable: string[] = [];
  for await (const page of ledger.served(days))
    for (const each of page)
      if ('row' in each) served.push(each.row);
      else unreadable.push(`${each.key}: ${each.problem}`);
  const { charges } = before.snapshot;
  const atMs = comparedAt(charges, after.snapshot.charges, nowMs);
  const isKnown = (model: string): boolean => isPriceKnown(inUse, { charges, atMs, model, fromMs, nowMs });
  const effects = editEffects({ before: before.snapshot, after: after.snapshot, served, isKnown, atMs });
  const old = new Set(before.results.map(textOf));
  return {
    ...effects,
    days,
    atMs,
    accounts: await runningEmpty(ports, { days, dayCount, models: effects.models }),
    problems: after.results
      .filter((result) => result.problem !== undefined && !old.has(textOf(result)))
      .map(({ table, key, problem }) => ({ table, key: String(key), problem })),
    unreadable,
  };
}

const textOf = (result: { table: string; key: string | number; problem?: string }): string =>
  `${nameOf(result)} ${result.problem ?? ''}`;

/** When the last of the rules begins that the edit adds or changes. */
function comparedAt(before: readonly ChargeRow[], after: readonly ChargeRow[], nowMs: number): number {
  const old = new Set(before.map((rule) => canonicalJson(rule)));
  const edited = after.filter((rule) => !old.has(canonicalJson(rule)));
  return Math.max(nowMs, ...edited.map(({ from = nowMs }) => from));
}
