/** Turns the edit of a row into a proposal with its changes and its impact on the calls of the last days. */
import type { ConfigPlan } from '../../../../shared/operate/config/write-rows.ts';
import { joinNames } from '../../../../shared/config/rows/read-table.ts';
import { plainValue } from '../../../../shared/config/rows/read-row.ts';
import { canonicalJson } from '../../../../shared/wire/json.ts';
import { nameOf, type RowDifference } from '../../../../shared/operate/config/row-changes.ts';
import { formatCount, formatInteger, Failure } from '../../../../shared/operate/plan.ts';
import {
  certaintyOf,
  middleOf,
  hasEffect,
  type Bounds,
  type ModelEffect,
} from '../../../../shared/operate/what-if/edit-effects.ts';
import { planWhatIf, type SoonerEmpty, type WhatIf } from '../../../../shared/operate/what-if/what-if.ts';
import { html, nothing, shownValue, type Content, type Markup } from '../../markup.ts';
import { minuteText, yuan } from '../layout/figures.ts';
import { lead, notice, warnings } from '../layout/frame.ts';
import { badge, column, head, money, number, table, type PageColumn } from '../layout/table.ts';
import { customerLink, proposedWrites, type Outcome, type Proposal, type Visit } from './visit.ts';

export async function rowProposal(
  visit: Visit,
  plan: ConfigPlan,
  words: Pick<Proposal, 'title' | 'back' | 'grave'> & { verb?: string },
): Promise<Proposal> {
  const proposal = proposedWrites(visit, plan, { verb: 'Save', ...words, said });
  const comparison = proposal.refusal === undefined && (await compared(visit.ports, plan));
  const details = html`${differenceTable(plan.differences)} ${comparison}`;
  return { ...proposal, basis: basisOf(plan.differences), details };
}

const said = ({ length }: unknown[]): Outcome => ({
  lines: [`Saved ${formatCount(length, 'row')} (live within 10 s).`],
});

async function compared(ports: Visit['ports'], { edit }: ConfigPlan): Promise<Markup> {
  try {
    return effectTables(await planWhatIf(ports, edit));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // A failed comparison must not block the edit.
    return notice('warning', `The impact could not be computed: ${error.message}`);
  }
}

/** Sorted, because the store returns rows and members of maps in any order. */
const basisOf = (differences: readonly RowDifference[]): string =>
  differences
    .flatMap(({ table: of, key, change, attributes }) =>
      attributes.map(({ name, before, after }) =>
        canonicalJson([of, key, change, name, plainValue(before) ?? null, plainValue(after) ?? null]),
      ),
    )
    .toSorted()
    .join('\n');

export function differenceTable(differences: readonly RowDifference[]): Markup {
  if (differences.length === 0) return nothing;
  const all = differences.flatMap(({ table: of, key, change, attributes }) =>
    attributes.map((attribute) => ({ ...attribute, row: `${of} ${key}`, change })),
  );
  const more = all.length - differencesMax;
  return html`${table(all.slice(0, differencesMax), {
    caption: 'Changes',
    empty: 'No changes.',
    columns: [
      head('Row', ({ row }) => row),
      column('Change', ({ change }) => change),
      column('Attribute', ({ name }) => html`<code>${name}</code>`),
      column('Before', ({ before }) => html`<span class="wide old">${valueWords(before)}</span>`),
      column('After', ({ after }) => html`<span class="wide new">${valueWords(after)}</span>`),
    ],
  })}
  ${more > 0 && lead(`${formatCount(more, 'more attribute')} not shown. To see all, run npx --no relay-ops version diff.`)}`;
}

const differencesMax = 200;

const charactersMax = 400;

function valueWords(value: unknown): string {
  const text = shownValue(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}… (${text.length} characters)` : text;
}

const namesMax = 20;
const modelsMax = 15;

function effectTables(effects: WhatIf): Markup {
  const { days, atMs, models, total, lost, free, unpriced, problems, unreadable, accounts } = effects;
  const changed = models.filter(hasEffect);
  const largest = changed.toSorted((a, b) => Number(sizeOf(b) - sizeOf(a)));
  const all: Row = { ...total, model: 'All models' };
  const rest = largest.slice(modelsMax);
  return html`<h2>Impact on the last 7 days</h2>
    ${names('No longer served', 'calls would be rejected', lost)}
    ${names('Free from now on', 'calls would cost nothing', free)}
    ${names('No price', 'see the setting unpriced_models', unpriced)}
    ${warnings(problems.map((each) => `${nameOf(each)} would be invalid: ${each.problem}`))}
    ${warnings([...unreadable, ...accounts.problems])}
    ${lead(
      html`${formatCount(total.calls, 'call')} from ${days.from} to ${days.to} (UTC), at the prices of
      ${minuteText(atMs)}. This assumes that the same calls would have been made.`,
    )}
    ${table(changed.length === 0 ? [] : [all, ...largest.slice(0, modelsMax)], {
      caption: 'Revenue and margin by model, before and after',
      markOf: (row) => (row.isLost ? 'bad' : undefined),
      empty:
        total.calls === 0
          ? 'No calls on these days, so there is nothing to compare.'
          : `No effect on the ${formatCount(models.length, 'model')} called on these days.`,
      columns,
    })}
    ${rest.length > 0 && lead(`${formatCount(rest.length, 'model changes', 'models change')} less than these. To see all, run npx --no relay-ops what-if.`)}
    ${
      changed.length > 0 &&
      total.unknownCostCalls > 0 &&
      html`<p class="soft">
        The margin leaves out ${formatCount(total.unknownCostCalls, 'call')} of unknown cost.
      </p>`
    }
    ${emptySooner(accounts)}`;
}

const sizeOf = ({ revenue, bought }: ModelEffect): bigint =>
  sizeBetween(revenue.before, revenue.after) + sizeBetween(bought.before, bought.after);

function sizeBetween(before: Bounds, after: Bounds): bigint {
  const difference = middleOf(after) - middleOf(before);
  return difference < 0n ? -difference : difference;
}

const names = (title: string, means: string, list: readonly string[]): Content =>
  list.length > 0 && notice('bad', html`<strong>${title}:</strong> ${joinNames(list, namesMax)}: ${means}.`);

type Row = WhatIf['total'] & Pick<ModelEffect, 'model'> & Partial<Pick<ModelEffect, 'isLost'>>;

const amount = (title: string, of: (row: Row) => Bounds): PageColumn<Row> =>
  number(title, (row) => [of(row).low === of(row).high ? nothing : '~', yuan(middleOf(of(row)))]);

const certainty = (side: 'revenue' | 'margin'): PageColumn<Row> =>
  column('Certainty', (row) => certaintyOf(row[side].before, row[side].after), {
    about: 'how exact the two amounts are',
  });

const columns: PageColumn<Row>[] = [
  head('Model', ({ model, isLost }) => [model, ' ', isLost ? badge('not served', 'bad') : nothing]),
  number('Calls', ({ calls }) => formatInteger(calls), { sortBy: ({ calls }) => calls }),
  amount('Revenue', ({ revenue }) => revenue.before),
  amount('Revenue after', ({ revenue }) => revenue.after),
  certainty('revenue'),
  amount('Margin', ({ margin }) => margin.before),
  amount('Margin after', ({ margin }) => margin.after),
  certainty('margin'),
];

const soonerColumns: PageColumn<SoonerEmpty>[] = [
  head('Customer', ({ account }) => customerLink(account)),
  money('Balance', ({ available }) => available),
  number('Days left now', ({ daysBefore }) => daysBefore?.toFixed(1) ?? 'over 365'),
  number('Days left after', ({ daysAfter }) => daysAfter.toFixed(1)),
];

const emptySooner = ({ looked, accounts, sooner }: WhatIf['accounts']): Markup =>
  looked === 0
    ? nothing
    : html`<h3>Customers who would run out sooner</h3>
        ${table(sooner, {
          caption: 'Customers who would run out sooner',
          empty: `None of the top ${looked} spenders of this month would run out sooner within a year.`,
          columns: soonerColumns,
        })}
        <p class="soft">
          Covers the top ${looked} spenders among ${formatCount(accounts, 'customer')} with calls this month.
        </p>`;
