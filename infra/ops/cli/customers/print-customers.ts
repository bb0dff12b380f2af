/** Prints customers. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import type { CustomerPage, ListedCustomer } from '../../../../shared/operate/customers/customer-list.ts';
import type {
  SpendingCustomer,
  SpendingPage,
} from '../../../../shared/operate/customers/spending-customers.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';

type Shown = ListedCustomer & Partial<Pick<SpendingCustomer, 'daysLeft'>>;

const columns =
  'account state available reserved spent_this_month granted_this_month calls_this_month plan last_call days_left note problem'.split(
    ' ',
  );

export function printCustomers(terminal: Terminal, page: CustomerPage | SpendingPage): void {
  const customers: Shown[] = page.customers;
  terminal.printList({
    columns,
    rows: customers.map(customerJson),
    table: () => [
      [
        'ACCOUNT',
        'STATE',
        'AVAILABLE',
        `SPENT ${page.month}`,
        'CALLS',
        'PLAN',
        'LAST CALL',
        'DAYS LEFT',
        'NOTE',
      ],
      ...customers.map(cellsOf),
    ],
    empty: 'no customers: make one with `npx --no relay-ops customer new <name>`',
  });
  page.problems.forEach(terminal.remark);
  for (const { account, problem, unknown } of customers)
    if (problem !== undefined || unknown !== undefined) terminal.remark(`${account}: ${problem ?? unknown}`);
  if ('active' in page) {
    if (page.active > customers.length)
      terminal.remark(`${page.active} customers had a call or a grant this month: see --limit`);
  } else if (page.next !== undefined)
    terminal.remark(
      `${page.count === undefined ? 'more' : `${page.count} in all`}: add --after '${page.next}'`,
    );
  else if (page.count !== undefined && page.count > customers.length)
    terminal.remark(`the first ${customers.length} of ${page.count}: see --limit`);
}

const daysText = (days: number): string => (days < 10 ? days.toFixed(1) : days.toFixed(0));

function cellsOf({ account, state, item, month, plan, lastCall, daysLeft, note }: Shown): string[] {
  return [
    account,
    state,
    item ? formatYuan(item.available) : '-',
    formatYuan(month.amounts.charged ?? 0n),
    String(month.counts.calls ?? 0),
    plan ? `level ${plan.level}` : '-',
    lastCall === undefined ? '-' : isoTime(lastCall * 1000),
    daysLeft === undefined ? '-' : daysText(daysLeft),
    note ?? '',
  ];
}

function customerJson({
  account,
  state,
  item,
  month,
  plan,
  lastCall,
  daysLeft,
  note,
  problem,
  unknown,
}: Shown) {
  return {
    account,
    state,
    available: item ? formatYuan(item.available) : null,
    reserved: item ? formatYuan(reservedOf(item)) : null,
    spent_this_month: formatYuan(month.amounts.charged ?? 0n),
    granted_this_month: formatYuan(month.amounts.granted ?? 0n),
    calls_this_month: month.counts.calls ?? 0,
    plan: plan?.level ?? null,
    last_call: lastCall === undefined ? null : isoTime(lastCall * 1000),
    ...(daysLeft !== undefined && { days_left: Number(daysText(daysLeft)) }),
    ...(note !== undefined && { note }),
    ...((problem ?? unknown) !== undefined && { problem: problem ?? unknown }),
  };
}
