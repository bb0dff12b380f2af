/** The edit of a row as a proposal, compared with what was called in the last days. */
import type { ConfigPlan } from '../../../../shared/operate/config/write-rows.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { whatIf, type SoonerEmpty, type WhatIf } from '../../../../shared/operate/what-if/what-if.ts';
import { bytes, counted, grouped, yuan } from '../layout/figures.ts';
import { html, nothing, type Markup, shownValue, type Content } from '../layout/markup.ts';
import { notice, warnings } from '../layout/frame.ts';
import { ofWrites, type Proposal, type Visit } from './visit.ts';
import {
  type AttributeChange,
  type RowDifference,
  nameOf,
} from '../../../../shared/operate/config/row-changes.ts';
import { table, badge, type Column } from '../layout/table.ts';
import {
  hasEffect,
  type ModelEffect,
  certaintyOf,
  middleOf,
  type Bounds,
} from '../../../../shared/operate/what-if/edit-effects.ts';

interface RowProposal {
  plan: ConfigPlan;
  title: string;
  back: string;
}

/** Compares the edit with what was called in the last days before it is written. */
export async function rowProposal({ ports }: Visit, { plan, title, back }: RowProposal): Promise<Proposal> {
  const proposal = ofWrites(plan, { title, back, verb: 'Write this' });
  const isCompared = proposal.refusal === undefined;
  return {
    ...proposal,
    details: html`${differenceTable(plan.differences)} ${isCompared ? await compared(ports, plan) : nothing}`,
    async carryOut() {
      const made = await carryOutWrites(ports, plan);
      if (made.length === 0) throw new Failure('nothing was written: somebody else was faster');
      return {
        lines: [
          `${made.length} ${made.length === 1 ? 'row is' : 'rows are'} written; live within 10 seconds.`,
        ],
      };
    },
  };
}

async function compared(ports: Visit['ports'], { edit }: ConfigPlan): Promise<Markup> {
  const before = ports.traffic();
  try {
    const effects = await whatIf(ports, edit);
    const after = ports.traffic();
    return html`${effectTables(effects)}
      <p class="soft">
        Compared by ${counted(after.requests - before.requests, 'request')},
        ${bytes(after.bytes - before.bytes)}.
      </p>`;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // An edit must not wait for its comparison.
    return notice('warning', `It could not be compared with the last days: ${error.message}`);
  }
}

// Differences of rows as a table: attribute, before, after.

interface ShownChange {
  row: string;
  change: RowDifference['change'];
  attribute: AttributeChange;
}

export function differenceTable(differences: readonly RowDifference[]): Markup {
  if (differences.length === 0) return nothing;
  const rows = differences.flatMap(({ table: of, key, change, attributes }): ShownChange[] =>
    attributes.map((attribute) => ({ row: `${of} ${key}`, change, attribute })),
  );
  return table({
    caption: 'Differences',
    rows,
    empty: 'No difference.',
    columns: [
      { title: 'Row', isHead: true, show: ({ row }) => row },
      { title: 'Change', show: ({ change }) => change },
      { title: 'Attribute', show: ({ attribute }) => html`<code>${attribute.name}</code>` },
      {
        title: 'Before',
        show: ({ attribute }) => html`<span class="wide old">${valueWords(attribute.before)}</span>`,
      },
      {
        title: 'After',
        show: ({ attribute }) => html`<span class="wide new">${valueWords(attribute.after)}</span>`,
      },
    ],
  });
}

const shownMax = 400;

function valueWords(value: unknown): string {
  const text = shownValue(value);
  return text.length > shownMax ? `${text.slice(0, shownMax)}… (${text.length} characters)` : text;
}

// What an edit would have made of the calls of the last days: the view of `what-if`, as tables.

function effectTables(effects: WhatIf): Markup {
  const { days, atMs, models, total, lost, free, unpriced, problems, unreadable, accounts } = effects;
  const changed = models.filter(hasEffect);
  const largest = changed.toSorted((a, b) => Number(sizeOf(b) - sizeOf(a)));
  const all: Row = { ...total, model: 'All models' };
  const rest = largest.slice(effectTablesShownMax);
  return html`<h2>What it would have made of the last days</h2>
    ${names('Nobody serves any more', 'their calls are refused', lost)}
    ${names('Become free', 'their calls cost nothing', free)}
    ${names('Served without a price', 'see the setting unpriced_models', unpriced)}
    ${warnings(problems.map((each) => `${nameOf(each)} would not be used: ${each.problem}`))}
    ${warnings([...unreadable, ...accounts.problems])}
    <p class="lead">
      ${grouped(total.calls)} calls from ${days.from} to ${days.to}, UTC, by the prices of
      ${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')}. Calls are taken to come as they came.
    </p>
    ${table({
      caption: 'Revenue and margin by model, before and after',
      rows: changed.length === 0 ? [] : [all, ...largest.slice(0, effectTablesShownMax)],
      markOf: (row) => (row.isLost ? 'bad' : undefined),
      empty:
        total.calls === 0
          ? 'There was no call on these days, so nothing can be compared.'
          : `All ${models.length} models that were called stay as they are.`,
      columns,
    })}
    ${
      rest.length === 0
        ? nothing
        : html`<details>
            <summary>${rest.length} more models, which change less</summary>
            ${table({ caption: 'Models that change less', rows: rest, empty: nothing, columns })}
          </details>`
    }
    ${
      changed.length > 0 && total.unknownCostCalls > 0
        ? html`<p class="soft">
            The margin has ${grouped(total.unknownCostCalls)} calls without their cost, which no channel’s row
            says.
          </p>`
        : nothing
    }
    ${emptySooner(accounts)}`;
}

const namesMax = 20;
const effectTablesShownMax = 15;

/** How much of revenue and cost the edit moves. */
const sizeOf = ({ revenue, bought }: ModelEffect): bigint =>
  sizeBetween(revenue.before, revenue.after) + sizeBetween(bought.before, bought.after);

function sizeBetween(before: Bounds, after: Bounds): bigint {
  const difference = middleOf(after) - middleOf(before);
  return difference < 0n ? -difference : difference;
}

function names(title: string, means: string, list: readonly string[]): Content {
  if (list.length === 0) return nothing;
  const more = list.length > namesMax ? ` and ${list.length - namesMax} more` : '';
  return notice(
    'bad',
    html`<strong>${title}:</strong> ${list.slice(0, namesMax).join(', ')}${more}: ${means}.`,
  );
}

type Row = WhatIf['total'] & Pick<ModelEffect, 'model'> & Partial<Pick<ModelEffect, 'isLost'>>;

type Side = 'revenue' | 'margin';

const amount = (title: string, of: (row: Row) => Bounds): Column<Row> => ({
  title,
  isNumber: true,
  show: (row) => [of(row).low === of(row).high ? nothing : '~', yuan(middleOf(of(row)))],
});

const certainty = (side: Side): Column<Row> => ({
  title: 'Certainty',
  about: 'how far the truth may be from these two amounts',
  show: (row) => certaintyOf(row[side].before, row[side].after),
});

const columns: Column<Row>[] = [
  {
    title: 'Model',
    isHead: true,
    show: ({ model, isLost }) => [model, ' ', isLost ? badge('not served', 'bad') : nothing],
  },
  { title: 'Calls', isNumber: true, show: ({ calls }) => grouped(calls), sortBy: ({ calls }) => calls },
  amount('Revenue', ({ revenue }) => revenue.before),
  amount('Revenue after', ({ revenue }) => revenue.after),
  certainty('revenue'),
  amount('Margin', ({ margin }) => margin.before),
  amount('Margin after', ({ margin }) => margin.after),
  certainty('margin'),
];

const emptySooner = ({ looked, accounts, sooner }: WhatIf['accounts']): Markup =>
  looked === 0
    ? nothing
    : html`<h3>Customers who run empty sooner</h3>
        ${table({
          caption: 'Customers who run empty sooner',
          rows: sooner,
          empty: `None of the ${looked} who spent most this month runs empty sooner within a year.`,
          columns: soonerColumns,
        })}
        <p class="soft">
          Of ${grouped(accounts)} customers with calls this month the ${looked} who spent most were looked at.
        </p>`;

const soonerColumns: Column<SoonerEmpty>[] = [
  {
    title: 'Customer',
    isHead: true,
    show: ({ account }) => html`<a href="customers/${encodeURIComponent(account)}">${account}</a>`,
  },
  { title: 'Balance', isNumber: true, show: ({ available }) => yuan(available) },
  {
    title: 'Lasts now, days',
    isNumber: true,
    show: ({ daysBefore }) => (daysBefore === undefined ? 'over 365' : daysBefore.toFixed(1)),
  },
  { title: 'Lasts then, days', isNumber: true, show: ({ daysAfter }) => daysAfter.toFixed(1) },
];
