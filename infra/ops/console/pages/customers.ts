/**
 * Lists customers by name, spend or days left, and shows one customer: balance, keys, grants, plan, and usage by day and
 * model.
 */
import { formatYuan } from '../../../../shared/billing/money.ts';
import { asRecord } from '../../../../shared/wire/json.ts';
import { sumReserved } from '../../../../shared/billing/quota-item.ts';
import {
  listCustomers,
  listSpending,
  type ListedCustomer,
  type SpendingCustomer,
  type SpendingOrder,
} from '../../../../shared/operate/customers/customer-list.ts';
import {
  useDays,
  viewCustomer,
  type CustomerView,
} from '../../../../shared/operate/customers/customer-view.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import {
  formatCount,
  formatInteger,
  formatMoney,
  formatWrittenMoney,
} from '../../../../shared/operate/plan.ts';
import { accountFields } from '../../fields/account-fields.ts';
import { listValues, nameAttribute } from '../../fields/describe-changes.ts';
import { topOf } from '../../fields/row-field.ts';
import { html, nothing, formatCell, type Content, type Markup } from '../../markup.ts';
import {
  formatPercent,
  renderAge,
  renderTime,
  renderLastChange,
  renderRowTime,
  renderYuan,
  formatYuanShort,
} from '../layout/figures.ts';
import { renderSearch } from '../layout/form.ts';
import {
  renderEmptyBox,
  renderEmptyState,
  renderItems,
  renderLead,
  renderNotice,
  renderWarnings,
  type Page,
} from '../layout/frame.ts';
import { renderCallsPlot, renderChargesPlot, renderSparkline } from '../layout/plot.ts';
import {
  actions,
  buildFigureColumns,
  renderBadge,
  renderBoth,
  column,
  renderCut,
  renderDefinitions,
  renderId,
  pickFigureColumns,
  head,
  number,
  renderPager,
  renderTable,
  renderTabs,
  renderTiles,
  renderWide,
  type PageColumn,
} from '../layout/table.ts';
import {
  renderCustomerLink,
  customerPathOf,
  buildPath,
  hideFromReaders,
  type Routes,
  type Visit,
} from '../visit/visit.ts';
import { renderKeyTable } from './keys.ts';
import { renderSelectable } from './selection.ts';

const pageRows = 50;

export function addCustomerPages(routes: Routes): void {
  routes.page('/customers', renderCustomers);
  routes.page('/customers/:account', renderCustomer);
}

const orders = [
  ['customers', 'All'],
  ['customers?order=spent', 'Top spenders'],
  ['customers?order=dry', 'Running low'],
] as const;

async function renderCustomers(visit: Visit): Promise<Page> {
  const order = visit.query('order');
  const name = visit.query('name');
  const isSpending = order === 'spent' || order === 'dry';
  const find = { action: 'customers', verb: 'Search' };
  return {
    title: 'Customers',
    actions: hideFromReaders(
      visit,
      html`<a class="button main" href="customers-new">New customer</a>
        <a class="button" href="customers-sheet">Add from a sheet</a>
        <a class="button" href="grants-sheet">Credit from a sheet</a>
        <a class="button" href="customers-codes">Redeem codes</a>
        <a class="button" href="customers-csv">Edit as CSV</a>`,
    ),
    body: html`${renderTabs('Order', orders, isSpending ? `customers?order=${order}` : 'customers')}
    ${!isSpending && renderSearch({ ...find, fields: [{ name: 'name', label: 'Part of a name', value: name }] })}
    ${isSpending ? await renderSpending(visit, order) : await renderByName(visit, name)}`,
  };
}

async function renderByName(visit: Visit, name: string): Promise<Markup> {
  const { ports, query } = visit;
  const after = query('after');
  const { customers, count, next, problems } = await listCustomers(ports, {
    ...(name !== '' && { name }),
    ...(after !== '' && { after }),
    limit: pageRows,
  });
  const words =
    count === undefined
      ? html`${formatCount(customers.length, 'customer')} of this page, unsorted; there are more`
      : html`${customers.length} of ${formatCount(count, 'customer')}, by name`;
  return html`${renderWarnings(problems)}
  ${renderSelectable(visit, ticked, customers, {
    caption: 'Customers',
    columns: buildColumns<ListedCustomer>(visit),
    markOf: ({ state }) => (state === 'bad' ? 'bad' : undefined),
    empty:
      name === ''
        ? renderEmptyState('No customers yet', html`<a href="customers-new">Create the first customer</a>.`)
        : renderEmptyState(
            next ? 'Nothing found so far' : `No name contains “${name}”`,
            html`<a href="customers">Show all customers</a>`,
          ),
  })}
  ${(customers.length > 0 || next) && renderPager(words, next && buildPath('customers', { name, after: next }))}`;
}

async function renderSpending(visit: Visit, order: SpendingOrder): Promise<Markup> {
  const page = await listSpending(visit.ports, { order, limit: pageRows });
  const { customers, active, looked, month, problems } = page;
  const isDry = order === 'dry';
  return html`${renderLead(
    isDry
      ? `Customers whose balance runs out first at the pace of ${month}, among the top ${looked} spenders. Plans are not counted.`
      : `Customers by what they spent in ${month} (UTC).`,
  )}
  ${renderWarnings(problems)}
  ${renderSelectable(visit, ticked, customers, {
    caption: isDry ? 'Customers by days left' : 'Customers by spend',
    columns: buildColumns<SpendingCustomer>(
      visit,
      number('Days left', ({ daysLeft }) => renderDaysLeft(daysLeft), {
        about: 'at the pace of this month',
        sortBy: ({ daysLeft }) => daysLeft ?? Number.MAX_SAFE_INTEGER,
      }),
    ),
    markOf: ({ daysLeft = Infinity }) => (daysLeft < 1 ? 'bad' : daysLeft < 3 ? 'warning' : undefined),
    empty: renderEmptyState(`No spending in ${month}`, html`<a href="customers">Show all customers</a>`),
  })}
  ${renderPager(`${customers.length} of ${formatCount(active, 'customer')} with calls or grants in ${month}`)}`;
}

const ticked = { list: 'customers', keyOf: ({ account }: ListedCustomer) => account } as const;

function renderDaysLeft(days: number | undefined): Content {
  if (days === undefined) return '–';
  if (days === 0) return renderBadge('empty', 'bad');
  if (days < 1) return renderBadge('less than 1', 'bad');
  if (days > 999) return 'over 999';
  return Math.floor(days);
}

function renderState({ state, problem }: ListedCustomer): Markup {
  if (state === 'on') return renderBadge('active', 'good');
  return state === 'off'
    ? renderBadge('closed')
    : html`<span title="${problem ?? ''}">${renderBadge('invalid', 'bad')}</span>`;
}

function renderBalance({ item, unknown }: ListedCustomer): Content {
  if (unknown !== undefined) return html`<span title="${unknown}">${renderBadge('unknown', 'bad')}</span>`;
  return item ? renderYuan(item.available) : '–';
}

const month = buildFigureColumns<ListedCustomer>((row) => row.month);

const buildColumns = <Customer extends ListedCustomer>(
  { nowMs, options: { readOnly: isReader } }: Visit,
  more?: PageColumn<Customer>,
): PageColumn<Customer>[] => [
  head('Customer', ({ account, trend }) =>
    renderBoth(
      renderCustomerLink(account),
      renderSparkline(trend, `Charged in the last ${trend.length} months (¥)`),
    ),
  ),
  column('State', renderState),
  number('Balance', renderBalance, {
    textOf: ({ item }) => item && formatYuanShort(item.available),
    sortBy: ({ item }) => (item ? formatYuan(item.available) : ''),
  }),
  ...(more ? [more] : []),
  { ...month.charged, title: 'This month', about: 'charged, UTC' },
  { ...month.calls, about: 'this month' },
  { ...month.failed, about: 'this month' },
  column('Plan', ({ plan }) => (plan ? `level ${plan.level}` : '–')),
  column('Last call', ({ lastCall }) => (lastCall === undefined ? '–' : renderAge(lastCall * 1000, nowMs)), {
    sortBy: ({ lastCall }) => lastCall ?? 0,
  }),
  column('Note', ({ note = '' }) => renderCut(note), { has: ({ note }) => note !== undefined }),
  ...(isReader ? [] : [actions<Customer>(renderEdit)]),
];

const renderEdit = ({ account }: ListedCustomer): Markup =>
  html`<a href="${customerPathOf(account)}/edit">Edit</a>`;

const listForms = (isOff: boolean) => [
  ['keys/new', 'New key'],
  ['edit', 'Edit'],
  ['payback', 'Pay back'],
  isOff ? ['reopen', 'Reopen'] : ['close', 'Close'],
];

/** Lists the remaining steps after a customer is closed. They are derived from the customer's state, so each stays until it is done. */
function renderClosingSteps({ account, isOff, item, attributes }: CustomerView): Content {
  const path = customerPathOf(account);
  const reserved = sumReserved(item);
  const amount = formatMoney(item.available);
  const steps = [
    reserved > 0n &&
      html`Wait until no call is in flight: ${renderYuan(reserved)} is reserved for
      ${formatCount(item.open.size, 'call')}.`,
    item.available > 0n &&
      html`Pay the balance back to the customer (it is final one minute after you close the customer), then
        record the payment: <a class="button" href="${path}/payback" data-drawer>Pay back ${amount}</a>`,
    ['contact', 'note'].some((name) => Object.hasOwn(attributes, name)) &&
      html`Erase the contact data when you no longer need it:
        <a class="button" href="${path}/erase" data-drawer>Erase contact data</a>`,
  ].filter((step) => step !== false);
  return (
    isOff && steps.length > 0 && renderNotice('calm', [html`<strong>To do</strong>`, renderItems(steps)])
  );
}

async function renderCustomer(visit: Visit): Promise<Page> {
  const account = visit.parameter('account');
  const view = await viewCustomer(visit.ports, account);
  const { readOnly } = visit.options;
  const path = customerPathOf(account);
  const named = encodeURIComponent(account);
  return {
    title: account,
    above: [],
    actions: hideFromReaders(visit, [
      html`<a class="button ${!view.isOff && 'main'}" href="${path}/grant" data-drawer>Top up</a>`,
      ...listForms(view.isOff).map(
        ([at, words]) => html`<a class="button" href="${path}/${at}" data-drawer>${words}</a>`,
      ),
    ]),
    body: html`${renderWarnings(view.warnings)} ${hideFromReaders(visit, renderClosingSteps(view))}
      ${renderBalanceTiles(view)} ${renderRowFacts(view, visit)} ${renderUsage(view)}
      <h2>Keys</h2>
      ${renderKeyTable(view.keys, visit, {
        empty: renderEmptyState(
          'No keys',
          readOnly
            ? 'This customer can’t call without a key.'
            : html`<a href="${path}/keys/new">Create a key</a> so that this customer can call.`,
        ),
      })}
      ${
        !view.hasAllKeys &&
        html`<p class="soft">
          There may be more keys: the table is too large for one page.
          <a href="keys?text=${named}">Search all keys</a>
        </p>`
      }
      <h2>Grants</h2>
      ${renderGrants(view, visit)}
      <p>
        <a href="requests?account=${named}">Requests</a> · <a href="ledger?account=${named}">Ledger</a> ·
        <a href="statements?account=${named}">Statement</a> ·
        <a href="audit?account=${named}">Audit</a>
      </p>`,
  };
}

function renderBalanceTiles({ item, isOff, plan, use }: CustomerView): Markup {
  const { counts, amounts } = use.sum;
  const calls = counts.calls ?? 0;
  const reserved = sumReserved(item);
  const underWay = html`${renderYuan(reserved)} more reserved by ${formatCount(item.open.size, 'call')} in
  flight`;
  return renderTiles([
    {
      name: 'Balance',
      value: renderYuan(item.available),
      note: reserved > 0n ? underWay : 'no calls in flight',
      mark: item.available < (isOff ? 0n : 1n) && 'bad',
    },
    { name: 'Granted', value: renderYuan(item.granted), note: 'all time, less money paid back' },
    { name: 'Spent', value: renderYuan(item.spent), note: formatCount(item.settled, 'call') },
    {
      name: use.isWhole ? `Last ${useDays} days` : `Since ${use.from}`,
      value: renderYuan(amounts.charged ?? 0n),
      note: `${formatCount(calls, 'call')}, ${formatPercent(counts.failures ?? 0, calls)} failed`,
    },
    {
      name: 'Plan',
      value: plan ? `level ${plan.level}` : 'none',
      note: plan?.until ? html`until ${renderTime(plan.until * 1000)}` : nothing,
    },
  ]);
}

function renderRowFacts({ attributes, written: by, plan }: CustomerView, { nowMs }: Visit): Markup {
  const last = renderLastChange(by, nowMs);
  return renderDefinitions('facts', [
    ...Object.entries(attributes).flatMap(([name, value]) => {
      const format = attributeFormats[name];
      if (format) return [[nameAttribute(name), format(value)] as const];
      const fields = accountFields.filter((field) => topOf(field.name) === name);
      return listValues(fields, { [name]: value }).map(({ label, text }) => [label, text] as const);
    }),
    ...(plan?.items ?? []).map(
      ({ name, used, value }) =>
        [
          `Plan: ${name}`,
          value < 0
            ? `${formatCount(used, 'call')} (unlimited)`
            : `${formatInteger(used)} of ${formatCount(value, 'call')}`,
        ] as const,
    ),
    ...(last === undefined ? [] : [['Last changed', last] as const]),
  ]);
}

/** The person before the addresses. Alerts go to the addresses. */
function renderContact(value: unknown): Content {
  const { name, email, webhook, ...others } = asRecord(value);
  if (Object.keys(others).length > 0) return formatCell(value);
  return [
    typeof name === 'string' && `${name} `,
    typeof email === 'string' && html`<a href="mailto:${encodeURIComponent(email)}">${email}</a> `,
    typeof webhook === 'string' && html`<span class="soft">alerts to</span> <code>${webhook}</code>`,
  ];
}

const attributeFormats: Readonly<Record<string, (value: unknown) => Content>> = {
  contact: renderContact,
  price_group: (value) => html`<a href="charges#groups">${formatCell(value)}</a>`,
};

function renderUsage({ use }: CustomerView): Markup {
  const { days, models } = use;
  if (days.length === 0)
    return html`<h2>Usage</h2>
      ${renderEmptyBox(`No calls in ${useDays} days`, 'Usage by day and model appears here within seconds of the first call.')}`;
  const points = days.map(({ name }) => name);
  return html`<h2>${use.isWhole ? `Usage in the last ${useDays} days` : `Usage since ${use.from}`}</h2>
    ${!use.isWhole && html`<p class="soft">Earlier days are left out because so many models were called.</p>`}
    <div class="columns">
      ${renderChargesPlot(days, points, '¥ per day')} ${renderCallsPlot(days, points, 'per day')}
    </div>
    ${renderTable(models.slice(0, modelsMax), { caption: 'Usage by model', empty: nothing, columns: modelColumns })}
    ${models.length > modelsMax && html`<p class="soft">Showing ${modelsMax} of ${models.length} models; the statement lists all.</p>`}`;
}

const modelsMax = 150;

const modelColumns = [
  head('Model', ({ name }: Summed) => name),
  ...pickFigureColumns<Summed>(
    (row) => row.figures,
    'calls',
    'failed',
    'input',
    'cached',
    'output',
    'charged',
  ),
];

const renderGrants = ({ grants, hasAllGrants }: CustomerView, { nowMs }: Visit): Markup =>
  html`${renderTable(grants, {
    caption: 'Grants',
    markOf: ({ problem, warning }) => (problem ? 'bad' : warning ? 'warning' : undefined),
    empty: renderEmptyState('No grants yet', 'The first grant creates the balance.'),
    columns: [
      head('Grant', ({ grantId }) => renderId(grantId)),
      number('Amount', ({ amount }) => formatWrittenMoney(amount), { sortBy: ({ amount }) => amount }),
      column('Applied', ({ applied, problem, warning }) => {
        if (problem !== undefined) return html`${renderBadge('invalid', 'bad')} ${renderWide(problem)}`;
        if (warning !== undefined) return html`${renderBadge('check', 'warning')} ${renderWide(warning)}`;
        return applied === undefined ? renderBadge('pending', 'warning') : renderRowTime(applied, nowMs);
      }),
    ],
  })}
  ${!hasAllGrants && html`<p class="soft">Showing the newest ${grants.length}. A statement lists all grants of its month.</p>`}`;
