/** The command `what-if`: what an edit would have made of the calls of the last week. Writes nothing. */
import type { Command } from 'commander';
import { whatIfFile, type WhatIf } from '../../../../shared/operate/what-if/what-if.ts';
import { type CommandContext, listing } from '../command.ts';
import { readTextFile } from '../text-files.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { nameOf } from '../../../../shared/operate/config/row-changes.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import {
  certaintyOf,
  middleOf,
  withinPercent,
  type Bounds,
  hasEffect,
  type ModelEffect,
} from '../../../../shared/operate/what-if/edit-effects.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { csvRows, type Terminal } from '../terminal.ts';

const notes = `
Computed from the sums of seven days, today among them; no call is looked at. "exact" is to the last unit. Where sums do not
say enough (tiers, prices of the cache that were free, prices per call) the middle stands there with how far the truth may
be from it. Calls are taken to come as they came: a price changes nothing about who calls, and calls of a channel that is
gone go to any other that serves the model. An edit with rules that begin later is compared at the time of the last.`;

export function addWhatIfCommand(program: Command, { onTables }: CommandContext): void {
  listing(
    program
      .command('what-if')
      .description(
        'say what an edit of prices or channels would have made of the calls of the last seven days',
      )
      .argument('<file>', 'the rows of this JSON file, put over those of the tables, as `config apply` does')
      .option('--prune', 'without the rows that the file does not have, of the tables that it names'),
  )
    .addHelpText('after', notes)
    .action(
      onTables(async ({ ports, terminal }, path: string, options: { prune?: boolean }) => {
        const file = { name: path, text: await readTextFile(path) };
        printWhatIf(terminal, await whatIfFile(ports, file, options));
      }),
    );
}

// Prints what an edit would have made of the calls of some days.

const namesMax = 10;

/** Throws a Failure when rows of the edit would not be used. */
function printWhatIf(terminal: Terminal, effects: WhatIf): void {
  const { format } = terminal;
  if (format === 'json') terminal.printJson(effectsJson(effects));
  else if (format === 'csv') terminal.printCsv(csvRows(columns, effects.models.map(modelJson)));
  else printText(terminal, effects);
  for (const finding of effects.problems) terminal.remark(`problem: ${nameOf(finding)}: ${finding.problem}`);
  effects.unreadable.concat(effects.accounts.problems).forEach(terminal.remark);
  if (effects.problems.length > 0)
    throw new Failure(`${effects.problems.length} rows of the edit would not be used`);
}

function printText(terminal: Terminal, effects: WhatIf): void {
  const { print } = terminal;
  const { days, atMs, models, total, accounts } = effects;
  print(`${total.calls} calls from ${days.from} to ${days.to}, by the prices of ${isoTime(atMs)}; in yuan:`);
  const changed = models.filter(hasEffect);
  terminal.printTable([
    ['MODEL', 'CALLS', 'REVENUE', 'THEN', '', 'BOUGHT', 'THEN', 'MARGIN', 'THEN', ''],
    ...changed.map((each) => rowOf(each.model, each)),
    rowOf('all models', total),
  ]);
  const same = models.length - changed.length;
  if (same > 0) print(`${same} models stay as they are.`);
  if (total.unknownCostCalls > 0)
    print(
      `${total.unknownCostCalls} calls are in the margin without their cost, which no channel's row says.`,
    );
  printNames(terminal, 'lose their last channel', effects.lost);
  printNames(terminal, 'become free', effects.free);
  printNames(terminal, 'would be served without a price', effects.unpriced);
  printAccounts(terminal, accounts);
}

type Sums = Pick<ModelEffect, 'calls' | 'revenue' | 'bought' | 'margin'>;

const rowOf = (name: string, { calls, revenue, bought, margin }: Sums): string[] => [
  name,
  String(calls),
  yuanText(revenue.before),
  yuanText(revenue.after),
  certaintyOf(revenue.before, revenue.after),
  yuanText(bought.before),
  yuanText(bought.after),
  yuanText(margin.before),
  yuanText(margin.after),
  certaintyOf(margin.before, margin.after),
];

/** The exact amount, or the middle to cents. */
function yuanText(bounds: Bounds): string {
  const text = formatYuan(middleOf(bounds));
  return bounds.low === bounds.high ? text : `~${Number(text).toFixed(2)}`;
}

function printNames({ print }: Terminal, what: string, names: string[]): void {
  if (names.length === 0) return;
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : '';
  print(`models that ${what}: ${names.slice(0, namesMax).join(', ')}${more}`);
}

function printAccounts(terminal: Terminal, { looked, accounts, sooner }: WhatIf['accounts']): void {
  if (looked === 0) return;
  const { print } = terminal;
  print('');
  print(
    `accounts that run empty sooner (looked at ${looked} of ${accounts}, those that spent most of late):`,
  );
  if (sooner.length === 0) return print('none within a year.');
  terminal.printTable([
    ['ACCOUNT', 'AVAILABLE', 'DAYS LEFT', 'THEN'],
    ...sooner.map(({ account, available, daysBefore, daysAfter }) => [
      account,
      formatYuan(available),
      daysBefore === undefined ? 'over 365' : String(daysBefore),
      String(daysAfter),
    ]),
  ]);
}

const boundsJson = (bounds: Bounds) => ({
  low: formatYuan(bounds.low),
  high: formatYuan(bounds.high),
  within_percent: withinPercent(bounds) ?? null,
});

const aroundJson = ({ before, after }: { before: Bounds; after: Bounds }) => ({
  before: boundsJson(before),
  after: boundsJson(after),
});

const sumsJson = ({ calls, charged, revenue, bought, margin, unknownCostCalls }: WhatIf['total']) => ({
  calls,
  charged: formatYuan(charged),
  revenue: aroundJson(revenue),
  bought: aroundJson(bought),
  margin: aroundJson(margin),
  calls_of_unknown_cost: unknownCostCalls,
});

const effectsJson = (effects: WhatIf) => ({
  days: effects.days,
  at: isoTime(effects.atMs),
  models: effects.models.map((each) => ({
    model: each.model,
    price_changed: each.isPriceChanged,
    lost: each.isLost,
    ...sumsJson(each),
  })),
  total: sumsJson(effects.total),
  lost: effects.lost,
  free: effects.free,
  unpriced: effects.unpriced,
  accounts: {
    looked_at: effects.accounts.looked,
    of: effects.accounts.accounts,
    empty_sooner: effects.accounts.sooner.map(({ account, available, daysBefore, daysAfter }) => ({
      account,
      available: formatYuan(available),
      days_before: daysBefore ?? null,
      days_after: daysAfter,
    })),
  },
  problems: effects.problems,
  unreadable: [...effects.unreadable, ...effects.accounts.problems],
});

const sides = ['revenue_before', 'revenue_after', 'bought_before', 'bought_after'] as const;
const columns = [
  'model',
  'calls',
  'charged',
  ...sides.flatMap((side) => [`${side}_low`, `${side}_high`]),
  'calls_of_unknown_cost',
  'price_changed',
  'lost',
];

function modelJson(each: ModelEffect): object {
  const { revenue, bought } = each;
  const bounds = [revenue.before, revenue.after, bought.before, bought.after];
  return {
    model: each.model,
    calls: each.calls,
    charged: formatYuan(each.charged),
    ...Object.fromEntries(
      sides.flatMap((side, at) => [
        [`${side}_low`, formatYuan(bounds[at]?.low ?? 0n)],
        [`${side}_high`, formatYuan(bounds[at]?.high ?? 0n)],
      ]),
    ),
    calls_of_unknown_cost: each.unknownCostCalls,
    price_changed: each.isPriceChanged,
    lost: each.isLost,
  };
}
