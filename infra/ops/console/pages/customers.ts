/** Customers in three orders: by name, by what they spent, by how long their balance lasts. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import {
  listCustomers,
  type ListedCustomer,
  listSpending,
  type SpendingCustomer,
  type SpendingOrder,
} from '../../../../shared/operate/customers/customer-list.ts';
import { figureColumns, badge, pager, table, type Column } from '../layout/table.ts';
import { grouped, yuan, when } from '../layout/figures.ts';
import { search } from '../layout/form.ts';
import { type Page, emptyState, warnings } from '../layout/frame.ts';
import { html, nothing, type Content, type Markup } from '../layout/markup.ts';
import type { Routes, Visit } from '../visit/visit.ts';

const pageRows = 50;

export function customerPages(routes: Routes): void {
  routes.page('/customers', list);
}

const orders = [
  ['', 'All'],
  ['spent', 'Spent most'],
  ['dry', 'Running dry'],
] as const;

async function list(visit: Visit): Promise<Page> {
  const order = visit.query('order');
  const name = visit.query('name');
  const isSpending = order === 'spent' || order === 'dry';
  const body = isSpending ? await spending(visit, order) : await byName(visit, name);
  return {
    title: 'Customers',
    section: 'customers',
    actions: visit.options.readOnly
      ? nothing
      : html`<a class="button main" href="customers-new">New customer</a>`,
    body: html`<nav class="tabs" aria-label="Order">
        ${orders.map(
          ([each, words]) =>
            html`<a
              href="customers${each === '' ? '' : `?order=${each}`}"
              ${each === (isSpending ? order : '') ? html`aria-current="page"` : nothing}
              >${words}</a
            >`,
        )}
      </nav>
      ${
        isSpending
          ? nothing
          : search({
              action: 'customers',
              verb: 'Find',
              fields: [{ name: 'name', label: 'Part of a name', value: name }],
            })
      }
      ${body}`,
  };
}

async function byName({ ports, query, nowMs }: Visit, name: string): Promise<Markup> {
  const page = await listCustomers(ports, {
    ...(name !== '' && { name }),
    ...(query('after') !== '' && { after: query('after') }),
    limit: pageRows,
  });
  const { customers, count, next, problems } = page;
  const words =
    count === undefined
      ? html`${customers.length} customers, in the order of the table; there are more`
      : html`${customers.length} of ${grouped(count)} customers, by name`;
  const at = new URLSearchParams({
    ...(name !== '' && { name }),
    ...(next !== undefined && { after: next }),
  });
  return html`${warnings(problems)}
  ${table({
    caption: 'Customers',
    rows: customers,
    columns: columnsOf<ListedCustomer>(nowMs),
    markOf: ({ state }) => (state === 'bad' ? 'bad' : undefined),
    empty:
      name === ''
        ? emptyState('No customer yet', html`Make the first one: <a href="customers-new">New customer</a>.`)
        : emptyState(`No name contains “${name}”`, html`<a href="customers">Show all customers</a>`),
  })}
  ${
    customers.length === 0
      ? nothing
      : pager({
          count: words,
          ...(query('after') !== '' && { first: 'customers' }),
          ...(next !== undefined && { next: `customers?${at.toString()}` }),
        })
  }`;
}

async function spending({ ports, nowMs }: Visit, order: SpendingOrder): Promise<Markup> {
  const page = await listSpending(ports, { order, limit: pageRows });
  const { customers, active, looked, month, problems } = page;
  return html`<p class="lead">
      ${
        order === 'dry'
          ? `Whose balance lasts shortest at the pace of ${month}, of the ${looked} who spent most. Plans are not counted.`
          : `Who spent most in ${month} (UTC).`
      }
    </p>
    ${warnings(problems)}
    ${table({
      caption: order === 'dry' ? 'Customers by how long their balance lasts' : 'Customers by what they spent',
      rows: customers,
      columns: columnsOf<SpendingCustomer>(nowMs, {
        title: 'Lasts',
        isNumber: true,
        about: 'at the pace of this month',
        show: ({ daysLeft }) => lastsWords(daysLeft),
        sortBy: ({ daysLeft }) => daysLeft ?? Number.MAX_SAFE_INTEGER,
      }),
      markOf: ({ daysLeft }) =>
        daysLeft !== undefined && daysLeft < 3 ? (daysLeft < 1 ? 'bad' : 'warning') : undefined,
      empty: emptyState(
        `Nobody spent anything in ${month}`,
        html`<a href="customers">Show all customers</a>`,
      ),
    })}
    ${pager({ count: html`${customers.length} of ${grouped(active)} customers with calls or grants in ${month}` })}`;
}

function lastsWords(days: number | undefined): Content {
  if (days === undefined) return '–';
  if (days === 0) return badge('empty', 'bad');
  return days < 1
    ? badge('under a day', 'bad')
    : days > 999
      ? 'years'
      : Math.floor(days) === 1
        ? '1 day'
        : `${Math.floor(days)} days`;
}

const month = figureColumns<ListedCustomer>((row) => row.month);

const columnsOf = <Customer extends ListedCustomer>(
  nowMs: number,
  more?: Column<Customer>,
): Column<Customer>[] => [
  {
    title: 'Customer',
    isHead: true,
    show: ({ account }) => html`<a href="customers/${encodeURIComponent(account)}">${account}</a>`,
  },
  {
    title: 'State',
    show: ({ state, problem }) =>
      state === 'on'
        ? badge('on', 'good')
        : state === 'off'
          ? badge('off')
          : html`<span title="${problem ?? ''}">${badge('not used', 'bad')}</span>`,
  },
  {
    title: 'Balance',
    isNumber: true,
    show: ({ item, unknown }) =>
      unknown === undefined
        ? item
          ? yuan(item.available)
          : '–'
        : html`<span title="${unknown}">${badge('unknown', 'bad')}</span>`,
    sortBy: ({ item }) => (item ? formatYuan(item.available) : ''),
  },
  ...(more ? [more] : []),
  { ...month.charged, title: 'This month', about: 'charged, UTC' },
  { ...month.calls, about: 'this month' },
  { ...month.failed, about: 'this month' },
  { title: 'Plan', show: ({ plan }) => (plan ? `level ${plan.level}` : '–') },
  {
    title: 'Last call',
    show: ({ lastCall }) => (lastCall === undefined ? '–' : when(lastCall * 1000, nowMs)),
    sortBy: ({ lastCall }) => lastCall ?? 0,
  },
  {
    title: 'Note',
    has: ({ note }) => note !== undefined,
    show: ({ note }) => html`<span class="cut" title="${note ?? ''}">${note ?? ''}</span>`,
  },
];
