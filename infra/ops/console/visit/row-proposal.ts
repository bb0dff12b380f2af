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
import { describeChanges, type FieldChange } from '../../fields/describe-changes.ts';
import { html, maskKeys, nothing, type Content, type Markup } from '../../markup.ts';
import { renderTime, renderTimes, renderYuan } from '../layout/figures.ts';
import { renderLead, renderNotice, renderWarnings } from '../layout/frame.ts';
import { renderBadge, column, head, money, number, renderTable, type PageColumn } from '../layout/table.ts';
import { renderCustomerLink, proposeWrites, type Outcome, type Proposal, type Visit } from './visit.ts';

export async function proposeRowEdit(
  visit: Visit,
  plan: ConfigPlan,
  words: Pick<Proposal, 'title' | 'back' | 'grave'> & { verb?: string },
): Promise<Proposal> {
  const proposal = proposeWrites(visit, plan, { verb: 'Save', ...words, report: reportSaved });
  const comparison = proposal.refusal === undefined && (await compareEffects(visit.ports, plan));
  const changes = describeChanges(plan.differences, visit.ports.target, plan.edit);
  return { ...proposal, basis: basisOf(plan.differences), changes, details: html`${comparison}` };
}

const reportSaved = ({ length }: unknown[]): Outcome => ({
  lines: [`Saved ${formatCount(length, 'row')} (live within 10 s).`],
});

async function compareEffects(ports: Visit['ports'], { edit }: ConfigPlan): Promise<Markup> {
  try {
    return renderEffects(await planWhatIf(ports, edit));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // A failed comparison must not block the edit.
    return renderNotice('warning', `The impact could not be computed: ${error.message}`);
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

export function renderChanges(changes: readonly FieldChange[]): Markup {
  const more = changes.length - changesMax;
  return html`${renderTable(changes.slice(0, changesMax), {
    caption: 'Changes',
    empty: nothing,
    isPlain: true,
    columns: [
      head('Row', ({ row }) => row),
      column('Field', ({ label, name }) => html`<span title="${name}">${label}</span>`),
      column('Before', ({ before }) => renderValue(before, 'old')),
      column('After', ({ after }) => renderValue(after, 'new')),
    ],
  })}
  ${more > 0 && renderLead(`${formatCount(more, 'more change')} not shown.`)}`;
}

const changesMax = 200;

const charactersMax = 400;

function renderValue(value: string, tone: 'old' | 'new'): Content {
  // Mask before cutting, because a part of a key would not be masked.
  const text = maskKeys(value);
  const shown =
    text.length > charactersMax ? `${text.slice(0, charactersMax)}… (${text.length} characters)` : text;
  return text === '' ? '–' : html`<span class="wide ${tone}">${renderTimes(shown)}</span>`;
}

const namesMax = 20;
const modelsMax = 15;

function renderEffects(effects: WhatIf): Markup {
  const { days, atMs, models, total, lost, free, unpriced, problems, unreadable, accounts } = effects;
  const changed = models.filter(hasEffect);
  const largest = changed.toSorted((a, b) => Number(sizeOf(b) - sizeOf(a)));
  const all: Row = { ...total, model: 'All models' };
  const smaller = largest.slice(modelsMax);
  return html`<h2>Impact on the last 7 days</h2>
    ${renderNames('No longer served', 'calls would be refused', lost)}
    ${renderNames('Free from now on', 'calls would cost nothing', free)}
    ${renderNames('No price', 'see the setting unpriced_models', unpriced)}
    ${renderWarnings(effects.emptyGroups.map((name) => `No customer is in the group ${name}.`))}
    ${renderWarnings(problems.map((each) => `${nameOf(each)} would be invalid: ${each.problem}`))}
    ${renderWarnings([...unreadable, ...accounts.problems])}
    ${renderLead(
      html`${formatCount(total.calls, 'call')} from ${days.from} to ${days.to} (UTC), at the prices of
      ${renderTime(atMs)}. This assumes that the same calls would have been made.`,
    )}
    ${renderTable(changed.length === 0 ? [] : [all, ...largest.slice(0, modelsMax)], {
      caption: 'Revenue and margin by model, before and after',
      markOf: (row) => (row.isLost ? 'bad' : undefined),
      empty:
        total.calls === 0
          ? 'No calls on these days, so there is nothing to compare.'
          : `No effect on the ${formatCount(models.length, 'model')} called on these days.`,
      columns,
    })}
    ${smaller.length > 0 && renderLead(`${formatCount(smaller.length, 'model changes', 'models change')} less than these.`)}
    ${
      changed.length > 0 &&
      total.unknownCostCalls > 0 &&
      html`<p class="soft">
        The margin leaves out ${formatCount(total.unknownCostCalls, 'call')} of unknown cost.
      </p>`
    }
    ${renderSooner(accounts, effects.isOfGroups ? ['member of the group', 'members of the group'] : ['customer'])}`;
}

const sizeOf = ({ revenue, bought }: ModelEffect): bigint =>
  measureChange(revenue.before, revenue.after) + measureChange(bought.before, bought.after);

function measureChange(before: Bounds, after: Bounds): bigint {
  const difference = middleOf(after) - middleOf(before);
  return difference < 0n ? -difference : difference;
}

const renderNames = (title: string, means: string, list: readonly string[]): Content =>
  list.length > 0 &&
  renderNotice('bad', html`<strong>${title}:</strong> ${joinNames(list, namesMax)}: ${means}.`);

type Row = WhatIf['total'] & Pick<ModelEffect, 'model'> & Partial<Pick<ModelEffect, 'isLost'>>;

const makeAmountColumn = (title: string, of: (row: Row) => Bounds): PageColumn<Row> =>
  number(title, (row) => [of(row).low === of(row).high ? nothing : '~', renderYuan(middleOf(of(row)))]);

const makeCertaintyColumn = (side: 'revenue' | 'margin'): PageColumn<Row> =>
  column('Certainty', (row) => certaintyOf(row[side].before, row[side].after), {
    about: 'how exact the two amounts are',
  });

const columns: PageColumn<Row>[] = [
  head('Model', ({ model, isLost }) => [model, ' ', isLost ? renderBadge('not served', 'bad') : nothing]),
  number('Calls', ({ calls }) => formatInteger(calls), { sortBy: ({ calls }) => calls }),
  makeAmountColumn('Revenue', ({ revenue }) => revenue.before),
  makeAmountColumn('Revenue after', ({ revenue }) => revenue.after),
  makeCertaintyColumn('revenue'),
  makeAmountColumn('Margin', ({ margin }) => margin.before),
  makeAmountColumn('Margin after', ({ margin }) => margin.after),
  makeCertaintyColumn('margin'),
];

const soonerColumns: PageColumn<SoonerEmpty>[] = [
  head('Customer', ({ account }) => renderCustomerLink(account)),
  money('Balance', ({ available }) => available),
  number('Days left now', ({ daysBefore }) => daysBefore?.toFixed(1) ?? 'over 365'),
  number('Days left after', ({ daysAfter }) => daysAfter.toFixed(1)),
];

const renderSooner = (
  { looked, accounts, sooner }: WhatIf['accounts'],
  noun: [one: string, more?: string],
): Markup =>
  looked === 0
    ? nothing
    : html`<h3>Customers who would run out sooner</h3>
        ${renderTable(sooner, {
          caption: 'Customers who would run out sooner',
          empty: 'None of them would run out sooner within a year.',
          columns: soonerColumns,
        })}
        <p class="soft">
          Covers ${looked < accounts ? `the top ${looked} spenders among` : 'all'}
          ${formatCount(accounts, ...noun)} with calls this month.
        </p>`;
