/** Reads what an edit would have made of the last days: the rows of a file, or of a form, put over those of the tables. */
import { compileSnapshot } from '../../config/compile-snapshot.ts';
import type { ConfigRows } from '../../config/rows/read-table.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { canonicalJson } from '../../wire/json.ts';
import {
  nameOf,
  type Finding,
  configTables,
  putOver,
  readRowsFile,
  type RowsFile,
} from '../config/row-changes.ts';
import type { OperatorPorts, DayRange, ServedDay, LedgerReader } from '../operator-ports.ts';
import { editEffects, type EditEffects, isSamePrice, middleOf, type ModelEffect } from './edit-effects.ts';
import { priceOf } from '../../billing/price.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import { largestFirst, type NanoYuan, larger } from '../../billing/amount.ts';
import { utcDay } from '../../wire/iso-time.ts';

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

// Whether the prices of models were the same for some days, by the published versions. Reads some snapshots at most.

const versionsMax = 10;

/** The rules that were in use one after the other. Undefined: nobody knows all of them. */
type ChargesInUse = readonly (readonly ChargeRow[])[] | undefined;

/** Of the version in force at `fromMs`, and of those after it. */
async function chargesSince(
  { config }: Pick<OperatorPorts, 'config'>,
  fromMs: number,
): Promise<ChargesInUse> {
  const kept = await config.versions({ sinceMs: fromMs });
  const first = kept.findIndex(({ publishedAt }) => publishedAt * 1000 <= fromMs);
  const oldest = kept.at(-1);
  // Before the first version of all there were no calls.
  const used = first >= 0 ? kept.slice(0, first + 1) : oldest?.version === 1 ? kept : undefined;
  if (!used || used.length > versionsMax || used.some(({ format }) => format !== snapshotFormat))
    return undefined;
  return Promise.all(used.map(async (version) => (await config.snapshot(version)).charges));
}

interface Asked {
  charges: readonly ChargeRow[];
  atMs: number;
  model: string;
  fromMs: number;
  nowMs: number;
}

/** Whether a model cost at any time since `fromMs` what these rules say of `atMs`. */
function isPriceKnown(inUse: ChargesInUse, { charges, atMs, model, fromMs, nowMs }: Asked): boolean {
  const compared = priceOf(charges, model, atMs);
  return (
    inUse?.every((rules) =>
      [fromMs, ...beginnings(rules, fromMs, nowMs), nowMs].every((each) =>
        isSamePrice(priceOf(rules, model, each), compared),
      ),
    ) === true
  );
}

const beginnings = (rules: readonly ChargeRow[], fromMs: number, toMs: number): number[] =>
  rules.flatMap(({ from }) => (from !== undefined && from > fromMs && from <= toMs ? [from] : []));

// View: which accounts run empty sooner after an edit. Looks at those that spend most, and says at how many.

/** Each is one request; balances are one for 100. */
const accountsMax = 40;
const atOnce = 8;
const dayMs = 24 * 60 * 60 * 1000;
/** Longer than that is no matter of this edit. */
const daysLeftMax = 365;

export interface SoonerEmpty {
  account: string;
  available: NanoYuan;
  /** Undefined: it does not run empty within a year. */
  daysBefore: number | undefined;
  daysAfter: number;
}

interface RunningEmpty {
  /** Those that spent most in the months of these days. */
  looked: number;
  /** All with a call or a grant in these months. */
  accounts: number;
  /** Those that run empty first come first. */
  sooner: SoonerEmpty[];
  /** Items that cannot be read. */
  problems: string[];
}

type RunningEmptyPorts = Pick<OperatorPorts, 'ledger'>;

/** @param models whose revenue the edit changes; the calls of an account are taken to be like those of all */
export async function runningEmpty(
  { ledger }: RunningEmptyPorts,
  { days, dayCount, models }: { days: DayRange; dayCount: number; models: readonly ModelEffect[] },
): Promise<RunningEmpty> {
  const problems: string[] = [];
  const spent = new Map<string, NanoYuan>();
  const rose = new Map(
    models
      .filter(({ revenue }) => middleOf(revenue.after) > middleOf(revenue.before))
      .map((each) => [each.model, each]),
  );
  if (rose.size === 0) return { looked: 0, accounts: 0, sooner: [], problems };
  // At the beginning of a month the days are of two.
  for (const month of new Set([days.from.slice(0, 7), days.to.slice(0, 7)]))
    for await (const page of ledger.monthAccounts(month))
      for (const each of page)
        if ('row' in each) {
          const { account, figures } = each.row;
          spent.set(account, (spent.get(account) ?? 0n) + (figures.amounts.charged ?? 0n));
        } else problems.push(`${each.key}: ${each.problem}`);
  const most = [...spent].toSorted(([, a], [, b]) => largestFirst(a, b)).slice(0, accountsMax);
  const balances = new Map<string, NanoYuan>();
  for (const each of await ledger.quotas(most.map(([account]) => account)))
    if ('row' in each) balances.set(each.row.account, each.row.available);
    else problems.push(`${each.key}: ${each.problem}`);
  const sooner: SoonerEmpty[] = [];
  const found = [...balances];
  for (let at = 0; at < found.length; at += atOnce)
    sooner.push(
      ...(
        await Promise.all(
          found.slice(at, at + atOnce).map(async ([account, available]) => {
            const spending = await spendingOf(ledger, { account, days, rose });
            return soonerOf({ account, available }, spending, dayCount);
          }),
        )
      ).flat(),
    );
  return {
    looked: balances.size,
    accounts: spent.size,
    sooner: sooner.toSorted((a, b) => a.daysAfter - b.daysAfter),
    problems,
  };
}

function soonerOf(
  { account, available }: { account: string; available: NanoYuan },
  { before, after }: Spending,
  dayCount: number,
): SoonerEmpty[] {
  if (after <= before || available <= 0n) return [];
  const daysAfter = daysLeft(available, after, dayCount);
  if (daysAfter > daysLeftMax) return [];
  const daysBefore = before > 0n ? daysLeft(available, before, dayCount) : Infinity;
  return [{ account, available, daysAfter, daysBefore: daysBefore > daysLeftMax ? undefined : daysBefore }];
}

/** In tenths. */
const daysLeft = (available: NanoYuan, spent: NanoYuan, dayCount: number): number =>
  Number((available * BigInt(dayCount) * 10n) / spent) / 10;

const daysBack = (nowMs: number, count: number): DayRange => ({
  from: utcDay(nowMs - (count - 1) * dayMs),
  to: utcDay(nowMs),
});

// What an account spent in some days, and would have spent after an edit.

interface Spending {
  before: NanoYuan;
  after: NanoYuan;
}

async function spendingOf(
  ledger: Pick<LedgerReader, 'daily'>,
  { account, days, rose }: { account: string; days: DayRange; rose: ReadonlyMap<string, ModelEffect> },
): Promise<Spending> {
  const spending = { before: 0n, after: 0n };
  for await (const page of ledger.daily(`account#${account}`, days))
    for (const each of page) {
      if (!('row' in each)) continue;
      const { key, figures } = each.row;
      const charged = figures.amounts.charged ?? 0n;
      const effect = rose.get(key.period.split('#')[2] ?? '');
      spending.before += charged;
      spending.after += effect ? charged + riseOf(effect, charged, figures.counts.calls ?? 0) : charged;
    }
  return spending;
}

/** The account's share of what the model brings in more: by charges, or by calls where there were none. */
function riseOf({ revenue, calls, charged: all }: ModelEffect, charged: NanoYuan, own: number): NanoYuan {
  const rise = larger(0n, middleOf(revenue.after) - middleOf(revenue.before));
  if (all > 0n) return (rise * charged) / all;
  return calls > 0 ? (rise * BigInt(own)) / BigInt(calls) : 0n;
}
