/** Customers in three orders: by name, by what they spent, by how long their balance lasts. */
import { counted } from '../../../../shared/operate/plan.ts';
import { formatYuan } from '../../../../shared/billing/price.ts';
import {
  listCustomers,
  listSpending,
  type ListedCustomer,
  type SpendingCustomer,
  type SpendingOrder,
} from '../../../../shared/operate/customers/customer-list.ts';
import { html, type Content, type Markup } from '../../markup.ts';
import { when, yuan, yuanText } from '../layout/figures.ts';
import { search } from '../layout/form.ts';
import { emptyState, lead, warnings, type Page } from '../layout/frame.ts';
import {
  allFigures,
  badge,
  column,
  cut,
  head,
  number,
  pager,
  table,
  tabs,
  type PageColumn,
} from '../layout/table.ts';
import { customerLink, pathWith, unlessReading, type Routes, type Visit } from '../visit/visit.ts';

const pageRows = 50;

export function customerPages(routes: Routes): void {
  routes.page('/customers', list);
}

const orders = [
  ['customers', 'All'],
  ['customers?order=spent', 'Spent most'],
  ['customers?order=dry', 'Running dry'],
] as const;

async function list(visit: Visit): Promise<Page> {
  const order = visit.query('order');
  const name = visit.query('name');
  const isSpending = order === 'spent' || order === 'dry';
  const find = { action: 'customers', verb: 'Find' };
  return {
    title: 'Customers',
    actions: unlessReading(
      visit,
      html`<a class="button main" href="customers-new">New customer</a>
        <a class="button" href="customers-csv">CSV</a>`,
    ),
    body: html`${tabs('Order', orders, isSpending ? `customers?order=${order}` : 'customers')}
    ${!isSpending && search({ ...find, fields: [{ name: 'name', label: 'Part of a name', value: name }] })}
    ${isSpending ? await spending(visit, order) : await byName(visit, name)}`,
  };
}

async function byName({ ports, query, nowMs }: Visit, name: string): Promise<Markup> {
  const after = query('after');
  const { customers, count, next, problems } = await listCustomers(ports, {
    ...(name !== '' && { name }),
    ...(after !== '' && { after }),
    limit: pageRows,
  });
  const words =
    count === undefined
      ? html`${counted(customers.length, 'customer')}, in the order of the table; there are more`
      : html`${customers.length} of ${counted(count, 'customer')}, by name`;
  return html`${warnings(problems)}
  ${table(customers, {
    caption: 'Customers',
    columns: columnsOf<ListedCustomer>(nowMs),
    markOf: ({ state }) => (state === 'bad' ? 'bad' : undefined),
    empty:
      name === ''
        ? emptyState('No customer yet', html`Make the first one: <a href="customers-new">New customer</a>.`)
        : emptyState(`No name contains “${name}”`, html`<a href="customers">Show all customers</a>`),
  })}
  ${
    customers.length > 0 &&
    pager({
      count: words,
      first: after && 'customers',
      next: next && pathWith('customers', { name, after: next }),
    })
  }`;
}

async function spending({ ports, nowMs }: Visit, order: SpendingOrder): Promise<Markup> {
  const page = await listSpending(ports, { order, limit: pageRows });
  const { customers, active, looked, month, problems } = page;
  const isDry = order === 'dry';
  return html`${lead(
    isDry
      ? `Whose balance lasts shortest at the pace of ${month}, of the ${looked} who spent most. Plans are not counted.`
      : `Who spent most in ${month} (UTC).`,
  )}
  ${warnings(problems)}
  ${table(customers, {
    caption: isDry ? 'Customers by how long their balance lasts' : 'Customers by what they spent',
    columns: columnsOf<SpendingCustomer>(
      nowMs,
      number('Lasts', ({ daysLeft }) => lastsWords(daysLeft), {
        about: 'at the pace of this month',
        sortBy: ({ daysLeft }) => daysLeft ?? Number.MAX_SAFE_INTEGER,
      }),
    ),
    markOf: ({ daysLeft = Infinity }) => (daysLeft < 1 ? 'bad' : daysLeft < 3 ? 'warning' : undefined),
    empty: emptyState(`Nobody spent anything in ${month}`, html`<a href="customers">Show all customers</a>`),
  })}
  ${pager({ count: html`${customers.length} of ${counted(active, 'customer')} with calls or grants in ${month}`, first: false, next: false })}`;
}

function lastsWords(days: number | undefined): Content {
  if (days === undefined) return '–';
  if (days === 0) return badge('empty', 'bad');
  if (days < 1) return badge('under a day', 'bad');
  if (days > 999) return 'years';
  return Math.floor(days) === 1 ? '1 day' : `${Math.floor(days)} days`;
}

function stateOf({ state, problem }: ListedCustomer): Markup {
  if (state === 'on') return badge('on', 'good');
  return state === 'off'
    ? badge('off')
    : html`<span title="${problem ?? ''}">${badge('not used', 'bad')}</span>`;
}

function balanceOf({ item, unknown }: ListedCustomer): Content {
  if (unknown !== undefined) return html`<span title="${unknown}">${badge('unknown', 'bad')}</span>`;
  return item ? yuan(item.available) : '–';
}

const month = allFigures<ListedCustomer>((row) => row.month);

const columnsOf = <Customer extends ListedCustomer>(
  nowMs: number,
  more?: PageColumn<Customer>,
): PageColumn<Customer>[] => [
  head('Customer', ({ account }) => customerLink(account)),
  column('State', stateOf),
  number('Balance', balanceOf, {
    textOf: ({ item }) => item && yuanText(item.available),
    sortBy: ({ item }) => (item ? formatYuan(item.available) : ''),
  }),
  ...(more ? [more] : []),
  { ...month.charged, title: 'This month', about: 'charged, UTC' },
  { ...month.calls, about: 'this month' },
  { ...month.failed, about: 'this month' },
  column('Plan', ({ plan }) => (plan ? `level ${plan.level}` : '–')),
  column('Last call', ({ lastCall }) => (lastCall === undefined ? '–' : when(lastCall * 1000, nowMs)), {
    sortBy: ({ lastCall }) => lastCall ?? 0,
  }),
  column('Note', ({ note = '' }) => cut(note), { has: ({ note }) => note !== undefined }),
];
