/** Reads what an edit would have made of the last days: the rows of a file, or of a form, put over those of the tables. */
import { larger, largestFirst, type NanoYuan } from '../../billing/price.ts';
import { accountId } from '../../billing/daily-keys.ts';
import { compileSnapshot } from '../../config/compile-snapshot.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import type { ConfigRows } from '../../config/rows/read-table.ts';
import { utcDay } from '../../wire/iso-time.ts';
import { canonicalJson } from '../../wire/json.ts';
import { configTables, nameOf, putOver, readRowsFile, type RowsFile } from '../config/row-changes.ts';
import { rowsIn } from '../ledger/ledger.ts';
import type { DayRange, OperatorPorts } from '../operator-ports.ts';
import { editEffects, middleOf, type ModelEffect } from './edit-effects.ts';

/** Today is one of them. */
const dayCount = 7;
const dayMs = 24 * 60 * 60 * 1000;

/** `atMs`: the prices of then are compared. `problems`: rows of the edit that would not be used. */
export type WhatIf = Awaited<ReturnType<typeof whatIf>>;

/** @param prune without the rows that the file lacks, in the tables that it names */
export async function whatIfFile(
  ports: OperatorPorts,
  file: RowsFile,
  { prune }: { prune?: boolean } = {},
): Promise<WhatIf> {
  const rows = readRowsFile(file, configTables);
  const tables = await ports.config.tables();
  return whatIf(ports, { before: tables, after: prune ? { ...tables, ...rows } : putOver(tables, rows) });
}

export async function whatIf(ports: OperatorPorts, edit: { before: ConfigRows; after: ConfigRows }) {
  const { clock, config, ledger, target } = ports;
  const nowMs = clock.now();
  const days = { from: utcDay(nowMs - (dayCount - 1) * dayMs), to: utcDay(nowMs) };
  const newest = await config.newest();
  const earlier = newest && (await config.rows(newest));
  const options = { local: target.local, publishedAt: Math.floor(nowMs / 1000), ...(earlier && { earlier }) };
  const [before, after] = [compileSnapshot(edit.before, options), compileSnapshot(edit.after, options)];
  const { rows: served, problems: unreadable } = await rowsIn(ledger.served(days));
  const atMs = comparedAt(before.snapshot.charges, after.snapshot.charges, nowMs);
  const effects = editEffects({ before: before.snapshot, after: after.snapshot, served, atMs });
  const old = new Set(before.results.map(textOf));
  return {
    ...effects,
    days,
    atMs,
    accounts: await runningEmpty(ports, days, effects.models),
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

export interface SoonerEmpty {
  account: string;
  available: NanoYuan;
  /** Undefined: it does not run empty within a year. */
  daysBefore: number | undefined;
  daysAfter: number;
}

/** Each is one request; balances are one for 100. */
const accountsMax = 40;
const atOnce = 8;
/** Longer than that is no matter of this edit. */
const daysLeftMax = 365;

/**
 * Which accounts run empty sooner after an edit, of those that spend most.
 * @param models whose revenue the edit changes; the calls of an account are taken to be like those of all
 */
export async function runningEmpty(
  { ledger }: OperatorPorts,
  days: DayRange,
  models: readonly ModelEffect[],
) {
  const rose = new Map(models.filter((each) => riseOf(each) > 0n).map((each) => [each.model, each]));
  if (rose.size === 0) return { looked: 0, accounts: 0, sooner: [], problems: [] };
  const spent = new Map<string, NanoYuan>();
  const problems: string[] = [];
  // At the beginning of a month the days are of two.
  for (const month of new Set([days.from.slice(0, 7), days.to.slice(0, 7)])) {
    const read = await rowsIn(ledger.monthAccounts(month));
    problems.push(...read.problems);
    for (const { account, figures } of read.rows)
      spent.set(account, (spent.get(account) ?? 0n) + (figures.amounts.charged ?? 0n));
  }
  const most = [...spent].toSorted(([, a], [, b]) => largestFirst(a, b)).slice(0, accountsMax);
  const found: { account: string; available: NanoYuan }[] = [];
  for (const each of await ledger.quotas(most.map(([account]) => account)))
    if ('row' in each) found.push(each.row);
    else problems.push(`${each.key}: ${each.problem}`);
  const sooner: SoonerEmpty[] = [];
  for (let at = 0; at < found.length; at += atOnce) {
    const some = found.slice(at, at + atOnce).map(async ({ account, available }) => {
      const spending = await spendingOf(ledger, { account, days, rose });
      return soonerOf({ account, available }, spending);
    });
    sooner.push(...(await Promise.all(some)).flat());
  }
  sooner.sort((a, b) => a.daysAfter - b.daysAfter);
  return { looked: found.length, accounts: spent.size, sooner, problems };
}

const riseOf = ({ revenue }: ModelEffect): NanoYuan => middleOf(revenue.after) - middleOf(revenue.before);

interface Spending {
  before: NanoYuan;
  after: NanoYuan;
}

/** What an account spent in some days, and would have spent after an edit. */
async function spendingOf(
  ledger: OperatorPorts['ledger'],
  { account, days, rose }: { account: string; days: DayRange; rose: ReadonlyMap<string, ModelEffect> },
): Promise<Spending> {
  const spending = { before: 0n, after: 0n };
  for (const { key, figures } of (await rowsIn(ledger.daily(accountId(account), days))).rows) {
    const charged = figures.amounts.charged ?? 0n;
    const effect = rose.get(key.period.split('#')[2] ?? '');
    spending.before += charged;
    spending.after += charged + (effect ? shareOf(effect, charged, figures.counts.calls ?? 0) : 0n);
  }
  return spending;
}

/** The account's share of what the model brings in more: by charges, or by calls where there were none. */
function shareOf(effect: ModelEffect, charged: NanoYuan, calls: number): NanoYuan {
  const rise = larger(0n, riseOf(effect));
  if (effect.charged > 0n) return (rise * charged) / effect.charged;
  return effect.calls > 0 ? (rise * BigInt(calls)) / BigInt(effect.calls) : 0n;
}

function soonerOf(
  { account, available }: Pick<SoonerEmpty, 'account' | 'available'>,
  { before, after }: Spending,
): SoonerEmpty[] {
  if (after <= before || available <= 0n) return [];
  // In tenths.
  const daysLeft = (spent: NanoYuan): number => Number((available * BigInt(dayCount) * 10n) / spent) / 10;
  const daysAfter = daysLeft(after);
  if (daysAfter > daysLeftMax) return [];
  const daysBefore = before > 0n ? daysLeft(before) : Infinity;
  return [{ account, available, daysAfter, daysBefore: daysBefore > daysLeftMax ? undefined : daysBefore }];
}
