/** One customer: balance, keys, grants, plan and use by day and model. */
import { counted, grouped } from '../../../../shared/operate/plan.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import {
  useDays,
  viewCustomer,
  type CustomerView,
} from '../../../../shared/operate/customers/customer-view.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import { utcDay } from '../../../../shared/wire/iso-time.ts';
import { html, nothing, shownValue, type Markup } from '../../markup.ts';
import { percent, written, yuan, writtenTime } from '../layout/figures.ts';
import { emptyBox, emptyState, warnings, type Page } from '../layout/frame.ts';
import { callsPlot, chargedPlot } from '../layout/plot.ts';
import { facts, figureColumns, head, table, tiles, badge, column, number, wide } from '../layout/table.ts';
import { customerPath, unlessReading, type Routes, type Visit } from '../visit/visit.ts';
import { keyTable } from './keys.ts';

export function customerPage(routes: Routes): void {
  routes.page('/customers/:account', one);
}

const forms = [
  ['keys/new', 'New key'],
  ['edit', 'Edit'],
  ['close', 'Close'],
] as const;

async function one(visit: Visit): Promise<Page> {
  const account = visit.part('account');
  const view = await viewCustomer(visit.ports, account);
  const { readOnly } = visit.options;
  const path = customerPath(account);
  const named = encodeURIComponent(account);
  return {
    title: account,
    above: [],
    actions: unlessReading(visit, [
      html`<a class="button main" href="${path}/grant">Top up</a>`,
      ...forms.map(([at, words]) => html`<a class="button" href="${path}/${at}">${words}</a>`),
    ]),
    body: html`${warnings(view.warnings)} ${balanceTiles(view)} ${rowFacts(view, visit)} ${usage(view)}
      <h2>Keys</h2>
      ${keyTable(view.keys, visit, {
        empty: emptyState(
          'No key',
          readOnly
            ? 'Nobody can call with this account.'
            : html`<a href="${path}/keys/new">Make a key</a>: without one nobody can call.`,
        ),
      })}
      ${
        !view.hasAllKeys &&
        html`<p class="soft">
          There may be more: the table of keys is larger than one page reads.
          <a href="keys?text=${named}">Look further</a>
        </p>`
      }
      <h2>Grants</h2>
      ${grantTable(view, visit)}
      <p>
        <a href="requests?account=${named}">Requests</a> · <a href="ledger?account=${named}">Ledger</a> ·
        <a href="statements?account=${named}">Statement</a> ·
        <a href="audit?account=${named}">Audit</a>
      </p>`,
  };
}

function balanceTiles({ item, plan, use }: CustomerView): Markup {
  const { counts, amounts } = use.sum;
  const calls = counts.calls ?? 0;
  const reserved = reservedOf(item);
  const underWay = html`${yuan(reserved)} more in ${counted(item.open.size, 'call')} under way`;
  return tiles([
    {
      name: 'Balance',
      value: yuan(item.available),
      note: reserved > 0n ? underWay : 'nothing under way',
      mark: item.available <= 0n && 'bad',
    },
    { name: 'Granted', value: yuan(item.granted), note: 'since the beginning' },
    { name: 'Spent', value: yuan(item.spent), note: counted(item.settled, 'call') },
    {
      name: use.isWhole ? `Last ${useDays} days` : `Since ${use.from}`,
      value: yuan(amounts.charged ?? 0n),
      note: `${counted(calls, 'call')}, ${percent(counts.failures ?? 0, calls)} failed`,
    },
    {
      name: 'Plan',
      value: plan ? `level ${plan.level}` : 'none',
      note: plan?.until ? html`until ${utcDay(plan.until * 1000)}` : nothing,
    },
  ]);
}

function rowFacts({ attributes, written: by, plan }: CustomerView, { nowMs }: Visit): Markup {
  const last = written(by, nowMs);
  return facts([
    ...Object.entries(attributes).map(([name, value]) => [attributeLabel(name), shownValue(value)] as const),
    ...(plan?.items ?? []).map(
      ({ name, used, value }) =>
        [
          `Plan: ${name}`,
          `${grouped(used)} of ${value < 0 ? 'unlimited calls' : counted(value, 'call')}`,
        ] as const,
    ),
    ...(last === undefined ? [] : [['Last written', last] as const]),
  ]);
}

/** `alert_below` -> `Alert below`. */
const attributeLabel = (name: string): string =>
  `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`;

function usage({ use }: CustomerView): Markup {
  const { days, models } = use;
  if (days.length === 0)
    return html`<h2>Use</h2>
      ${emptyBox(`No call in ${useDays} days`, 'Use by day and model appears here some seconds after the first call.')}`;
  const points = days.map(({ name }) => name);
  return html`<h2>${use.isWhole ? `Use of the last ${useDays} days` : `Use since ${use.from}`}</h2>
    ${!use.isWhole && html`<p class="soft">So many models were called that the days before are not read.</p>`}
    <div class="columns">${chargedPlot(days, points, '¥ a day')} ${callsPlot(days, points, 'a day')}</div>
    ${table(models.slice(0, modelsMax), { caption: 'Use by model', empty: nothing, columns: modelColumns })}
    ${models.length > modelsMax && html`<p class="soft">The first ${modelsMax} of ${models.length} models; the statement has all.</p>`}`;
}

const modelsMax = 150;

const modelColumns = [
  head('Model', ({ name }: Summed) => name),
  ...figureColumns<Summed>((row) => row.figures, 'calls', 'failed', 'input', 'cached', 'output', 'charged'),
];

const grantTable = ({ grants, hasAllGrants }: CustomerView, { nowMs }: Visit): Markup =>
  html`${table(grants, {
    caption: 'Grants',
    markOf: ({ problem }) => (problem === undefined ? undefined : 'bad'),
    empty: emptyState('No grant yet', 'A balance begins with a top-up.'),
    columns: [
      head('Grant', ({ grantId }) => html`<code>${grantId}</code>`),
      number('Amount', ({ amount }) => html`${amount}<span class="unit">¥</span>`, {
        sortBy: ({ amount }) => amount,
      }),
      column('Applied', ({ applied, problem }) => {
        if (problem !== undefined) return html`${badge('not used', 'bad')} ${wide(problem)}`;
        return applied === undefined ? badge('waits', 'warning') : writtenTime(applied, nowMs);
      }),
    ],
  })}
  ${!hasAllGrants && html`<p class="soft">The newest ${grants.length}; the statement has all of a month.</p>`}`;
