/** One customer: balance, keys, grants, plan and use by day and model. */
import { yuanNumber } from '../../../../shared/billing/amount.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import {
  useDays,
  type CustomerUse,
  viewCustomer,
  type CustomerView,
} from '../../../../shared/operate/customers/customer-view.ts';
import { figureColumns, facts, table, tiles, type Column } from '../layout/table.ts';
import { counted, grouped, percent, yuan, written } from '../layout/figures.ts';
import { type Page, emptyState, warnings } from '../layout/frame.ts';
import { html, nothing, shownValue, type Markup } from '../layout/markup.ts';
import { plot } from '../layout/plot.ts';
import type { Routes, Visit } from '../visit/visit.ts';
import { keyTable } from './keys.ts';
import { grantTable } from './grants.ts';
import { utcDay } from '../../../../shared/wire/iso-time.ts';

export function customerPage(routes: Routes): void {
  routes.page('/customers/:account', one);
}

async function one(visit: Visit): Promise<Page> {
  const account = visit.part('account');
  const view = await viewCustomer(visit.ports, account);
  const { readOnly } = visit.options;
  const path = `customers/${encodeURIComponent(account)}`;
  return {
    title: account,
    section: 'customers',
    above: [['customers', 'Customers']],
    actions: readOnly
      ? nothing
      : html`<a class="button main" href="${path}/grant">Top up</a
          ><a class="button" href="${path}/keys/new">New key</a><a class="button" href="${path}/plan">Plan</a
          ><a class="button" href="${path}/edit">Edit</a><a class="button" href="${path}/close">Close</a>`,
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
        view.hasAllKeys
          ? nothing
          : html`<p class="soft">
              There may be more: the table of keys is larger than one page reads.
              <a href="keys?text=${encodeURIComponent(account)}">Look further</a>
            </p>`
      }
      <h2>Grants</h2>
      ${grantTable(view, visit)}
      <p>
        <a href="requests?account=${encodeURIComponent(account)}">Requests</a> ·
        <a href="statements?account=${encodeURIComponent(account)}">Statement</a> ·
        <a href="audit?account=${encodeURIComponent(account)}">Audit</a>
      </p>`,
  };
}

/** `Last 30 days`, or from which day on. */
const useTitle = ({ isWhole, from }: CustomerUse): string =>
  isWhole ? `Last ${useDays} days` : `Since ${from}`;

function balanceTiles({ item, plan, use }: CustomerView): Markup {
  const { counts, amounts } = use.sum;
  const reserved = reservedOf(item);
  return tiles([
    {
      name: 'Balance',
      value: yuan(item.available),
      note:
        reserved > 0n
          ? html`${yuan(reserved)} more in ${counted(item.open.size, 'call')} under way`
          : 'nothing under way',
      ...(item.available <= 0n && { mark: 'bad' as const }),
    },
    { name: 'Granted', value: yuan(item.granted), note: 'since the beginning' },
    { name: 'Spent', value: yuan(item.spent), note: counted(item.settled, 'call') },
    {
      name: useTitle(use),
      value: yuan(amounts.charged ?? 0n),
      note: `${counted(counts.calls ?? 0, 'call')}, ${percent(counts.failures ?? 0, counts.calls ?? 0)} failed`,
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
        [`Plan: ${name}`, `${grouped(used)} of ${value < 0 ? 'unlimited' : grouped(value)} calls`] as const,
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
      <div class="empty">
        ${emptyState(
          `No call in ${useDays} days`,
          'Use by day and model appears here some seconds after the first call.',
        )}
      </div>`;
  const times = days.map(({ day }) => Date.parse(`${day}T00:00:00Z`) / 1000);
  return html`<h2>${use.isWhole ? `Use of the last ${useDays} days` : `Use since ${use.from}`}</h2>
    ${
      use.isWhole
        ? nothing
        : html`<p class="soft">So many models were called that the days before are not read.</p>`
    }
    <div class="columns">
      ${plot({
        id: 'charged-by-day',
        title: 'Charged',
        unit: '¥ a day',
        times,
        series: [
          {
            label: 'charged',
            values: days.map(({ figures }) => yuanNumber(figures.amounts.charged ?? 0n)),
            kind: 'bars',
            tone: 'third',
          },
        ],
      })}
      ${plot({
        id: 'calls-by-day',
        title: 'Calls',
        unit: 'a day',
        times,
        series: [
          {
            label: 'calls',
            values: days.map(({ figures }) => figures.counts.calls ?? 0),
            kind: 'bars',
            tone: 'first',
          },
          {
            label: 'failed',
            values: days.map(({ figures }) => figures.counts.failures ?? 0),
            kind: 'bars',
            tone: 'bad',
          },
        ],
      })}
    </div>
    ${table({
      caption: 'Use by model',
      rows: models,
      empty: nothing,
      columns: modelColumns,
    })}`;
}

const columns = figureColumns<{ figures: DailyFigures }>((row) => row.figures);

const modelColumns: Column<CustomerUse['models'][number]>[] = [
  { title: 'Model', isHead: true, show: ({ model }) => model },
  columns.calls,
  columns.failed,
  columns.input,
  columns.cached,
  columns.output,
  columns.charged,
];
