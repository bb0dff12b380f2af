/** Reads what an edit would have made of the last days. */
import { larger, compareLargestFirst, type NanoYuan } from '../../billing/money.ts';
import type { DailySum } from '../../billing/daily-figures.ts';
import {
  estimateDaysLeft,
  computePaid,
  computeSpendingPace,
  type SpendingPace,
} from '../../billing/spending-pace.ts';
import type { WholeAccount } from '../../billing/shards.ts';
import { formatAccountId, modelOf } from '../../billing/daily-keys.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { utcDay, dayMs } from '../../wire/iso-time.ts';
import { canonicalJson } from '../../wire/json.ts';
import { compileRows, nameOf, readServedRows, type ConfigEdit } from '../config/row-changes.ts';
import { readPaceMonths, readingsOf, readAllRows } from '../ledger/ledger.ts';
import type { DayRange, OperatorPorts } from '../operator-ports.ts';
import { editEffects, middleOf, type ModelEffect } from './edit-effects.ts';

/** Today is one of them. */
const dayCount = 7;

/** `atMs`: the prices of then are compared. `problems`: rows of the edit that would not be used. */
export type WhatIf = Awaited<ReturnType<typeof planWhatIf>>;

export async function planWhatIf(ports: OperatorPorts, edit: ConfigEdit) {
  const { clock, ledger } = ports;
  const nowMs = clock.now();
  const days = { from: utcDay(nowMs - (dayCount - 1) * dayMs), to: utcDay(nowMs) };
  const earlier = await readServedRows(ports);
  const [before, after] = [
    compileRows(ports, edit.before, { earlier }),
    compileRows(ports, edit.after, { earlier }),
  ];
  const { rows: served, problems: unreadable } = await readAllRows(ledger.served(days));
  const atMs = chooseCompareTime(before.snapshot, after.snapshot, nowMs);
  const customers = await readPricedCustomers(ports);
  const groups = listEditedGroups(before.snapshot, after.snapshot);
  const isMember = ({ price_group: group = '' }: AccountRow): boolean => groups?.includes(group) === true;
  const concerned = groups && customers.filter(isMember);
  const members = await readMembers(ports, days, concerned);
  const effects = editEffects({
    before: before.snapshot,
    after: after.snapshot,
    served,
    atMs,
    customers,
    members,
  });
  const old = new Set(before.results.map(textOf));
  return {
    ...effects,
    days,
    atMs,
    isOfGroups: groups !== undefined,
    emptyGroups: groups?.filter((name) => !customers.some((each) => each.price_group === name)) ?? [],
    accounts: await findRunningEmpty(
      ports,
      days,
      members ? effects.models.map((each) => takeShare(each, members)) : effects.models,
      concerned && new Set(concerned.map(({ account }) => account)),
    ),
    problems: after.results
      .filter((result) => result.problem !== undefined && !old.has(textOf(result)))
      .map(({ table, key, problem }) => ({ table, key: String(key), problem })),
    unreadable,
  };
}

/** The price groups that the edit changes. Undefined if it changes other prices, too, or none. */
function listEditedGroups(before: Snapshot, after: Snapshot): string[] | undefined {
  if (canonicalJson(before.charges) !== canonicalJson(after.charges)) return undefined;
  const [old, next] = [before.settings.priceGroups ?? {}, after.settings.priceGroups ?? {}];
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])].filter(
    (name) => canonicalJson(old[name] ?? []) !== canonicalJson(next[name] ?? []),
  );
  return names.length > 0 ? names : undefined;
}

type Members = NonNullable<Awaited<ReturnType<typeof readMembers>>>;

/** Undefined for more customers than are read one by one: then the sums of all give bounds. */
async function readMembers({ ledger }: OperatorPorts, days: DayRange, concerned: AccountRow[] | undefined) {
  if (!concerned || concerned.length > accountsMax) return undefined;
  return Promise.all(
    concerned.map(async (customer) => {
      const { rows: sums } = await readAllRows(ledger.daily(formatAccountId(customer.account), days));
      return { customer, sums };
    }),
  );
}

/** Only members share what the model brings in more. */
function takeShare(effect: ModelEffect, members: Members): ModelEffect {
  const sums = members.flatMap((each) => each.sums.filter((sum) => modelOf(sum) === effect.model));
  const charged = sums.reduce((sum, { figures }) => sum + computePaid(figures), 0n);
  return {
    ...effect,
    charged,
    calls: sums.reduce((sum, { figures }) => sum + (figures.counts.calls ?? 0), 0),
  };
}

const readPricedCustomers = async ({ tables }: OperatorPorts): Promise<AccountRow[]> =>
  (await tables.scan('accounts')).flatMap((raw) => {
    const reading = readRow(AccountRow, raw);
    return 'row' in reading && (reading.row.prices ?? reading.row.price_group) ? [reading.row] : [];
  });

const textOf = (result: { table: string; key: string | number; problem?: string }): string =>
  `${nameOf(result)} ${result.problem ?? ''}`;

/** Returns the latest start of the rules and price group entries that the edit adds or changes. */
function chooseCompareTime(before: Snapshot, after: Snapshot, nowMs: number): number {
  const old = new Set(listDated(before).map((dated) => canonicalJson(dated)));
  const edited = listDated(after).filter((dated) => !old.has(canonicalJson(dated)));
  return Math.max(nowMs, ...edited.map(({ from = nowMs }) => from));
}

const listDated = ({ charges, settings }: Snapshot) => [
  ...charges,
  ...Object.values(settings.priceGroups ?? {}).flat(),
];

/** `daysBefore` undefined: it did not run empty within a year. */
export type SoonerEmpty = ReturnType<typeof soonerOf>[number];

/** Each is one request; balances are one for 100. */
const accountsMax = 40;
const atOnce = 8;
/** Longer than that is no matter of this edit. */
const daysLeftMax = 365;

/**
 * Accounts, among those that spend most, that would run out of balance sooner after an edit.
 * @param models whose revenue the edit changes; the calls of an account are taken to be like those of all
 * @param concerned the only accounts whose prices change
 */
export async function findRunningEmpty(
  ports: OperatorPorts,
  days: DayRange,
  models: readonly ModelEffect[],
  concerned?: ReadonlySet<string>,
) {
  const { ledger } = ports;
  const rose = new Map(models.filter((each) => riseOf(each) > 0n).map((each) => [each.model, each]));
  if (rose.size === 0) return { looked: 0, accounts: 0, sooner: [], problems: [] };
  const { byAccount, paid, ...months } = await readPaceMonths(ports);
  // A top-up alone makes a sum of the month, too.
  const hasCalls = (account: string): boolean =>
    byAccount.get(account)?.some(({ figures }) => (figures.counts.calls ?? 0) > 0) === true;
  const callers = [...paid].filter(
    ([account]) => hasCalls(account) && (concerned === undefined || concerned.has(account)),
  );
  const most = callers.toSorted(([, a], [, b]) => compareLargestFirst(a, b)).slice(0, accountsMax);
  const { rows: found, problems } = readingsOf(await ledger.quotas(most.map(([account]) => account)));
  const sooner: SoonerEmpty[] = [];
  for (let at = 0; at < found.length; at += atOnce) {
    const some = found.slice(at, at + atOnce).map(async (item) => {
      const { rows } = await readAllRows(ledger.daily(formatAccountId(item.account), days));
      const pace = computeSpendingPace(item, byAccount.get(item.account) ?? [], ports.clock.now());
      return soonerOf(item, pace, sumRise(rows, rose));
    });
    sooner.push(...(await Promise.all(some)).flat());
  }
  sooner.sort((a, b) => a.daysAfter - b.daysAfter);
  return {
    looked: found.length,
    accounts: callers.length,
    sooner,
    problems: [...months.problems, ...problems],
  };
}

const riseOf = ({ revenue }: ModelEffect): NanoYuan => middleOf(revenue.after) - middleOf(revenue.before);

/** The account's share of what the model brings in more: by charges, or by calls where there were none. */
function shareOf(effect: ModelEffect, charged: NanoYuan, calls: number): NanoYuan {
  const rise = larger(0n, riseOf(effect));
  if (effect.charged > 0n) return (rise * charged) / effect.charged;
  return effect.calls > 0 ? (rise * BigInt(calls)) / BigInt(effect.calls) : 0n;
}

/** How much more the account would have paid in these days. */
const sumRise = (sums: readonly DailySum[], rose: ReadonlyMap<string, ModelEffect>): NanoYuan =>
  sums.reduce((sum, { key, figures }) => {
    const effect = rose.get(modelOf({ key }));
    return sum + (effect ? shareOf(effect, computePaid(figures), figures.counts.calls ?? 0) : 0n);
  }, 0n);

/** @param rise what the account would have paid more in `dayCount` days, or since it began */
function soonerOf(item: WholeAccount, pace: SpendingPace, rise: NanoYuan) {
  const { account, available } = item;
  const { paid, days } = pace;
  if (rise <= 0n || available <= 0n) return [];
  const scaled = BigInt(Math.round(Number(rise) * (days / Math.min(dayCount, days))));
  const daysAfter = estimateDaysLeft(item, { paid: paid + scaled, days });
  if (daysAfter === undefined || daysAfter > daysLeftMax) return [];
  const daysBefore = estimateDaysLeft(item, pace) ?? Infinity;
  return [
    {
      account,
      available,
      daysAfter: roundToTenths(daysAfter),
      daysBefore: daysBefore > daysLeftMax ? undefined : roundToTenths(daysBefore),
    },
  ];
}

const roundToTenths = (value: number): number => Math.round(value * 10) / 10;
