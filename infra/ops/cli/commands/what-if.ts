/** The command `what-if`: what an edit would have made of the calls of the last week. Writes nothing. */
import { formatYuan } from '../../../../shared/billing/money.ts';
import { editByFile, nameOf } from '../../../../shared/operate/config/row-changes.ts';
import { formatCount, Failure } from '../../../../shared/operate/plan.ts';
import {
  certaintyOf,
  middleOf,
  measureUncertainty,
  hasEffect,
  type Bounds,
  type ModelEffect,
} from '../../../../shared/operate/what-if/edit-effects.ts';
import { planWhatIf, type SoonerEmpty, type WhatIf } from '../../../../shared/operate/what-if/what-if.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { defineView } from '../command.ts';
import { nameValues, formatTable, type Column, type Terminal } from '../terminal.ts';
import { readTextFile } from '../text-files.ts';

export const whatIfCommand = defineView('what-if', {
  does: 'show how a change of prices or channels would have affected the last 7 days',
  lists: true,
  takes: {
    '<file>': 'JSON file with the changed rows, as for `config apply`',
    '--prune': 'also treat rows missing from the file as deleted, in the tables it contains',
  },
  notes: `
Uses the daily totals of the last seven days, including today, and assumes the same calls: calls of a removed channel go to
another channel that serves the model. If the totals are not detailed enough (tiers, free cache prices, prices per call),
it shows the middle of the possible range and the deviation. Rules with a later start time count as already started.`,
  examples: ['what-if rows.json', 'what-if rows.json --prune --json'],
  async run({ ports, terminal }, path: string, options: { prune?: boolean }) {
    const file = { name: path, text: await readTextFile(path) };
    const effects = await planWhatIf(ports, await editByFile(ports, file, options.prune));
    const { models, problems } = effects;
    terminal.printAs(formatEffectsJson(effects), () => printText(terminal, effects), [
      csvColumns.map(([name]) => name),
      models.map((each) => nameValues(csvColumns, each)),
    ]);
    for (const finding of problems) terminal.remark(`error: ${nameOf(finding)}: ${finding.problem}`);
    effects.unreadable.concat(effects.accounts.problems).forEach(terminal.remark);
    if (problems.length > 0)
      throw new Failure(
        `${formatCount(problems.length, 'row')} of the file ${problems.length === 1 ? 'is' : 'are'} invalid`,
      );
  },
});

type SummedEffect = Pick<ModelEffect, 'model' | 'calls' | 'revenue' | 'bought' | 'margin'>;

const columns: Column<SummedEffect>[] = [
  ['', 'MODEL', ({ model }) => model],
  ['', 'CALLS', ({ calls }) => calls],
  ['', 'REVENUE', ({ revenue }) => formatBounds(revenue.before)],
  ['', 'THEN', ({ revenue }) => formatBounds(revenue.after)],
  ['', ' ', ({ revenue }) => certaintyOf(revenue.before, revenue.after)],
  ['', 'BOUGHT', ({ bought }) => formatBounds(bought.before)],
  ['', 'THEN', ({ bought }) => formatBounds(bought.after)],
  ['', 'MARGIN', ({ margin }) => formatBounds(margin.before)],
  ['', 'THEN', ({ margin }) => formatBounds(margin.after)],
  ['', ' ', ({ margin }) => certaintyOf(margin.before, margin.after)],
];

/** The exact amount, or the middle to cents. */
function formatBounds(bounds: Bounds): string {
  const text = formatYuan(middleOf(bounds));
  return bounds.low === bounds.high ? text : `~${Number(text).toFixed(2)}`;
}

const csvColumns: Column<ModelEffect>[] = [
  ['model', '', ({ model }) => model],
  ['calls', '', ({ calls }) => calls],
  ['charged', '', ({ charged }) => formatYuan(charged)],
  ...(['revenue', 'bought'] as const).flatMap((sum) =>
    (['before', 'after'] as const).flatMap((side) =>
      (['low', 'high'] as const).map((end): Column<ModelEffect> => [
        `${sum}_${side}_${end}`,
        '',
        (each) => formatYuan(each[sum][side][end]),
      ]),
    ),
  ),
  ['calls_of_unknown_cost', '', ({ unknownCostCalls }) => unknownCostCalls],
  ['price_changed', '', ({ isPriceChanged }) => isPriceChanged],
  ['lost', '', ({ isLost }) => isLost],
];

function printText(terminal: Terminal, effects: WhatIf): void {
  const { print, printTable } = terminal;
  const { days, atMs, models, total } = effects;
  const { looked, accounts, sooner } = effects.accounts;
  print(
    `Impact on ${formatCount(total.calls, 'call')} from ${days.from} to ${days.to}, with the prices of ${isoTime(atMs)}, in yuan:`,
  );
  const changed = models.filter(hasEffect);
  printTable(formatTable(columns, [...changed, { ...total, model: 'all models' }]));
  const same = models.length - changed.length;
  if (same > 0) print(`${formatCount(same, 'model')} unchanged.`);
  if (total.unknownCostCalls > 0)
    print(
      `The margin does not include ${formatCount(total.unknownCostCalls, 'call')} of unknown cost: their channels have no cost set.`,
    );
  printNames(terminal, 'Models that would lose their last channel', effects.lost);
  printNames(terminal, 'Models that would become free', effects.free);
  printNames(terminal, 'Models that would be served without a price', effects.unpriced);
  printNames(terminal, 'Price groups without a customer', effects.emptyGroups);
  if (looked === 0) return;
  print('');
  print(
    `Customers who would run out sooner (checked the ${looked} of ${accounts} with the highest recent spend):`,
  );
  if (sooner.length === 0) print('None within a year.');
  else printTable(formatTable(soonerColumns, sooner));
}

const namesMax = 10;

function printNames({ print }: Terminal, what: string, names: string[]): void {
  if (names.length === 0) return;
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : '';
  print(`${what}: ${names.slice(0, namesMax).join(', ')}${more}`);
}

const soonerColumns: Column<SoonerEmpty>[] = [
  ['account', 'ACCOUNT', ({ account }) => account],
  ['available', 'AVAILABLE', ({ available }) => formatYuan(available)],
  [
    'days_before',
    'DAYS LEFT',
    ({ daysBefore }) => daysBefore ?? null,
    ({ daysBefore }) => `${daysBefore ?? 'over 365'}`,
  ],
  ['days_after', 'THEN', ({ daysAfter }) => daysAfter],
];

const formatBoundsJson = (bounds: Bounds) => ({
  low: formatYuan(bounds.low),
  high: formatYuan(bounds.high),
  within_percent: measureUncertainty(bounds) ?? null,
});

const formatChangeJson = ({ before, after }: { before: Bounds; after: Bounds }) => ({
  before: formatBoundsJson(before),
  after: formatBoundsJson(after),
});

const formatSumsJson = ({ calls, charged, revenue, bought, margin, unknownCostCalls }: WhatIf['total']) => ({
  calls,
  charged: formatYuan(charged),
  revenue: formatChangeJson(revenue),
  bought: formatChangeJson(bought),
  margin: formatChangeJson(margin),
  calls_of_unknown_cost: unknownCostCalls,
});

const formatEffectsJson = ({ days, atMs, models, total, lost, free, unpriced, ...effects }: WhatIf) => ({
  days,
  at: isoTime(atMs),
  models: models.map((each) => ({
    model: each.model,
    price_changed: each.isPriceChanged,
    lost: each.isLost,
    ...formatSumsJson(each),
  })),
  total: formatSumsJson(total),
  lost,
  free,
  unpriced,
  empty_groups: effects.emptyGroups,
  accounts: {
    looked_at: effects.accounts.looked,
    of: effects.accounts.accounts,
    empty_sooner: effects.accounts.sooner.map((each) => nameValues(soonerColumns, each)),
  },
  problems: effects.problems,
  unreadable: [...effects.unreadable, ...effects.accounts.problems],
});
