/** The commands of `customer`: who buys from this relay. Balances, refunds and plans in detail are commands of `account`. */
import { Option, type Command } from 'commander';
import {
  planCloseAccount,
  planEditAccount,
  type CloseAccountPlan,
} from '../../../../shared/operate/customers/edit-account.ts';
import {
  listCustomers,
  balanceOrders,
  sortCustomers,
  type BalanceOrder,
  listSpending,
  type SpendingOrder,
  type CustomerPage,
  type ListedCustomer,
  type SpendingCustomer,
  type SpendingPage,
} from '../../../../shared/operate/customers/customer-list.ts';
import {
  viewCustomer,
  useDays,
  type CustomerUse,
  type CustomerView,
} from '../../../../shared/operate/customers/customer-view.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
  type NewCustomerInput,
  type CustomerMade,
  type NewCustomerPlan,
  accountLink,
  welcomeMessage,
} from '../../../../shared/operate/customers/new-customer.ts';
import { usageFailure, shellWord } from '../../../../shared/operate/plan.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import {
  type CommandContext,
  type Run,
  limiting,
  limitOf,
  listing,
  writes,
  countProgress,
} from '../command.ts';
import { parseList, parseNumber } from '../option-values.ts';
import { formatYuan, parseYuan } from '../../../../shared/billing/amount.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import type { AccountPlan } from '../../../../shared/wire/public-api.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { hashText, hintText, shortHash } from '../print-keys.ts';
import type { Terminal } from '../terminal.ts';

const notes = `
A customer is a row of the table accounts, with keys and grants. \`account\` has the rest: grant, refund, plan.
\`customer new\` may be repeated after it broke off: what it grants is granted once.`;

export function addCustomerCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const customer = program
    .command('customer')
    .description('customers: new ones, who spends, who runs dry, switch off, close')
    .addHelpText('after', notes);

  addNew(customer, context);

  limiting(
    listing(customer.command('list').description('balance, plan, spent this month, last call')),
    'customers',
  )
    .addOption(
      new Option(
        '--sort <by>',
        'name; balance: smallest first; spent: most first, this month; dry: whose balance ends first; last: latest call first; idle: longest without a call first',
      )
        .choices(['name', 'spent', 'dry', ...balanceOrders])
        .default('name'),
    )
    .option('--name <text>', 'only those whose name contains it (not with spent and dry)')
    .option('--after <next>', 'the next page, as the page before said (sorted by name)')
    .action(onTables(list));

  customer
    .command('show')
    .description('show balance, plan use, calls under way, keys, the last grants and 30 days of use')
    .argument('<account>', 'as `customer list` shows it')
    .action(
      onTables(async ({ ports, terminal }, name: string) =>
        printCustomer(terminal, await viewCustomer(ports, name)),
      ),
    );

  addSwitches(customer, context);
  addClose(customer, context);
}

/** `wait`: seconds. */
interface NewOptions extends Omit<NewCustomerInput, 'account'> {
  wait: number;
  link?: boolean;
}

function addNew(customer: Command, { writing }: CommandContext): void {
  writing(
    customer
      .command('new')
      .description('make the account, its first grant and a key; print a message to send')
      .argument('<name>', 'of the account, in all tables; it cannot be changed later')
      .option('--grant <yuan>', 'how much it begins with (default: nothing)')
      .option('--contact <mail>', 'where alerts of its balance go')
      .option('--note <text>', 'for operators; the customer does not see it')
      .option('--reason <text>', 'of the grant; shown to the customer in their usage')
      .option('--models <a,b>', 'the only models the key may call (default: every model)', parseList)
      .option('--link', 'put a link into the message that opens the account page with the key')
      .option('--wait <seconds>', 'how long to wait until the grant is applied', parseNumber, 15),
    async ({ ports, terminal }, account: string, { wait, link = false, ...input }: NewOptions) => {
      const plan = await planNewCustomer(ports, { account, ...input });
      return writes({
        plan,
        carryOut: () => carryOutNewCustomer(ports, plan, wait * 1000),
        print: (shown, made) => printNewCustomer(shown, plan, { ...made, isLinked: link }),
        facts: (made) => newCustomerFacts(terminal, plan, made && { ...made, isLinked: link }),
      });
    },
  );
}

interface ListOptions {
  sort: 'name' | SpendingOrder | BalanceOrder;
  limit?: number;
  name?: string;
  after?: string;
}

async function list({ ports, terminal }: Run, { sort, name, after, ...options }: ListOptions): Promise<void> {
  const limit = limitOf(terminal.format, options.limit);
  if (sort === 'name') {
    let page = await listCustomers(ports, { name, after, limit });
    // A table of more than one request goes on in its own order.
    const nextOf = (): string | undefined => (limit === Infinity ? page.next : undefined);
    for (let next = nextOf(); next !== undefined; next = nextOf()) {
      const more = await listCustomers(ports, { name, after: next, limit });
      const problems = [...page.problems, ...more.problems];
      page = { ...more, customers: [...page.customers, ...more.customers], problems };
    }
    return printCustomers(terminal, page);
  }
  if (after !== undefined) throw usageFailure('--after goes with --sort name');
  if (sort !== 'spent' && sort !== 'dry') {
    const progress = countProgress(terminal, 'accounts read');
    return printCustomers(terminal, await sortCustomers(ports, { order: sort, name, limit }, progress));
  }
  if (name !== undefined) throw usageFailure(`--name does not go with --sort ${sort}`);
  printCustomers(terminal, await listSpending(ports, { order: sort, limit }));
}

function addSwitches(customer: Command, { writing }: CommandContext): void {
  const edit = (command: Command, attributesOf: (text: string | undefined) => RawRow, said: string) =>
    writing(command, async ({ ports }, account: string, text: unknown) => {
      const written = typeof text === 'string' ? text : undefined;
      const plan = await planEditAccount(ports, { account, attributes: attributesOf(written) });
      return writes({
        plan,
        carryOut: () => carryOutWrites(ports, plan),
        print: ({ print }) => print(`${account}: ${said}.`),
        facts: () => ({ account }),
      });
    });
  edit(
    customer
      .command('note')
      .description('set the note of a customer, for operators alone')
      .argument('<account>', 'as `customer list` shows it')
      .argument('[text]', 'what to remember (default: the note is removed)'),
    (text) => ({ note: text }),
    'the note is written',
  );
  edit(
    customer
      .command('disable')
      .description('refuse every key of a customer from now on (within 30 s)')
      .argument('<account>', 'as `customer list` shows it'),
    () => ({ enabled: false }),
    'every key is refused within 30 seconds',
  );
  edit(
    customer
      .command('enable')
      .description('let the keys of a customer work again')
      .argument('<account>', 'as `customer list` shows it'),
    () => ({ enabled: true, _closed: undefined }),
    'its keys work within 30 seconds',
  );
}

function addClose(customer: Command, { writing }: CommandContext): void {
  writing(
    customer
      .command('close')
      .description(
        'end a customer: refuse all keys, say what is left and how to pay it back; deletes nothing',
      )
      .argument('<account>', 'as `customer list` shows it'),
    async ({ ports }, account: string) => {
      const plan = await planCloseAccount(ports, account);
      return writes({
        plan,
        carryOut: () => carryOutWrites(ports, plan),
        print: (terminal) => printClosed(terminal, plan),
        facts: () => closeFacts(plan),
      });
    },
  );
}

// Prints one customer: what the console's page of it shows.

const keysShown = 20;
const grantsShown = 5;
const modelsShown = 5;

export function printCustomer(terminal: Terminal, view: CustomerView): void {
  if (terminal.format === 'json') terminal.printJson(customerJson(view));
  else printText(terminal, view);
  terminal.warn(view.warnings);
  const { account, keys, hasAllKeys, grants, hasAllGrants } = view;
  const isText = terminal.format !== 'json';
  if (!hasAllKeys || (isText && keys.length > keysShown))
    terminal.remark(`there may be more keys: see \`key list --account ${shellWord(account)}\``);
  if (!hasAllGrants || (isText && grants.length > grantsShown))
    terminal.remark(`there are more grants: see \`grant list --account ${shellWord(account)}\``);
}

function customerJson(view: CustomerView) {
  const { account, isOff, item, plan, attributes, written, keys, hasAllKeys, grants, hasAllGrants } = view;
  return {
    account,
    state: isOff ? 'off' : 'on',
    available: formatYuan(item.available),
    reserved: formatYuan(reservedOf(item)),
    spent: formatYuan(item.spent),
    granted: formatYuan(item.granted),
    open: item.open.size,
    settled: item.settled,
    plan,
    attributes,
    written_by: textOf(written._by) || null,
    written_at: textOf(written._at) || null,
    keys: keys.map(({ row, state }) => ({ hint: hintText(row['hint']), hash: hashText(row['hash']), state })),
    all_keys: hasAllKeys,
    grants: grants.map((grant) => Object.assign({}, grant, { amount: amountText(grant) })),
    all_grants: hasAllGrants,
    use: useJson(view.use),
  };
}

/** Whole days of UTC, the first and the last included. */
const useJson = ({ from, to, sum, days, models }: CustomerUse) => ({
  from,
  to,
  ...figuresJson(sum),
  days: days.map(({ day, figures }) => ({ day, ...figuresJson(figures) })),
  models: models.map(({ model, figures }) => ({ model, ...figuresJson(figures) })),
});

const figuresJson = ({ counts, amounts }: DailyFigures) => ({
  calls: counts.calls ?? 0,
  failures: counts.failures ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  cached_tokens: counts.cached_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  charged: formatYuan(amounts.charged ?? 0n),
});

function printText(terminal: Terminal, view: CustomerView): void {
  const { account, isOff, item, plan, attributes, written, keys, grants, use } = view;
  terminal.print(`account ${account}${isOff ? ', switched off' : ''}`);
  terminal.printTable([
    ['  available', `${formatYuan(item.available)} yuan`],
    ['  reserved', `${formatYuan(reservedOf(item))} yuan, for ${item.open.size} calls under way`],
    ['  spent', `${formatYuan(item.spent)} yuan, ${item.settled} calls`],
    ['  granted', `${formatYuan(item.granted)} yuan`],
    ['  used', `${useText(use.sum)}, ${use.isWhole ? `in the last ${useDays} days` : `since ${use.from}`}`],
    ...use.models
      .slice(0, modelsShown)
      .map(({ model, figures }) => ['', `${model}: ${useText(figures)}${tokensText(figures)}`]),
    ...(use.models.length > modelsShown
      ? [['', `and ${use.models.length - modelsShown} models more: --json has all, also by day`]]
      : []),
    ['  plan', plan ? planText(plan) : 'none'],
    ...(plan?.items ?? []).map((entry) => [
      '',
      `${entry.name}: ${entry.used} of ${entry.value < 0 ? 'unlimited' : entry.value} calls, resets ${isoTime(entry.resets_at * 1000)}`,
    ]),
    ...Object.entries(attributes).map(([name, value]) => [`  ${name}`, cellText(value)]),
    ...(written._at === undefined ? [] : [['  written', writtenText(written)]]),
    ...keys.slice(0, keysShown).map((key, at) => [at === 0 ? '  keys' : '', keyText(key)]),
    ...grants.slice(0, grantsShown).map((grant, at) => [at === 0 ? '  grants' : '', grantText(grant)]),
  ]);
}

const useText = ({ counts, amounts }: DailyFigures): string =>
  `${formatYuan(amounts.charged ?? 0n)} yuan, ${counts.calls ?? 0} calls, ${counts.failures ?? 0} failed`;

const tokensText = ({ counts }: DailyFigures): string =>
  `, ${counts.prompt_tokens ?? 0} tokens in (${counts.cached_tokens ?? 0} cached), ${counts.completion_tokens ?? 0} out`;

const planText = ({ level, until }: AccountPlan): string =>
  `level ${level}${until === null ? '' : `, until ${isoTime(until * 1000)}`}`;

const keyText = ({ row, state, why }: KeyView): string =>
  `${hintText(row['hint'])} (hash ${shortHash(row['hash'])}): ${state}${state === 'usable' ? `, ${why}` : ''}`;

/** What stands in the place of an amount, and is none, may be anything. */
const amountText = ({ amount }: WrittenGrant): string => (parseYuan(amount) === undefined ? '?' : amount);

function grantText(grant: WrittenGrant): string {
  const { grantId, applied, problem } = grant;
  const amount = amountText(grant);
  if (problem !== undefined) return `${grantId}: ${amount} yuan, not used: ${problem}`;
  return `${grantId}: ${amount} yuan, ${applied === undefined ? 'not applied yet' : `applied ${applied}`}`;
}

const writtenText = ({ _by, _at }: CustomerView['written']): string =>
  `${textOf(_at)}${_by === undefined ? '' : ` by ${textOf(_by)}`}`;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const cellText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

// Prints customers.

type Shown = ListedCustomer & Partial<Pick<SpendingCustomer, 'daysLeft'>>;

const columns =
  'account state available reserved spent_this_month granted_this_month calls_this_month plan last_call days_left note problem'.split(
    ' ',
  );

function printCustomers(terminal: Terminal, page: CustomerPage | SpendingPage): void {
  const customers: Shown[] = page.customers;
  terminal.printList({
    columns,
    rows: customers.map(printCustomersCustomerJson),
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

function printCustomersCustomerJson({
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

// Prints a customer that was made, and the message for it. Only this file shows its key: once.

interface PrintNewCustomerShown extends CustomerMade {
  isLinked: boolean;
}

const messageOf = (
  { account, grant, baseUrl, pages }: NewCustomerPlan,
  { secretKey, isLinked }: PrintNewCustomerShown,
): string[] =>
  welcomeMessage({
    account,
    secretKey,
    baseUrl,
    pages,
    isLinked,
    amount: grant && formatYuan(grant.amount),
  });

const noAccountPage = 'There is no link: the setting account_page is false.';

const linkOf = ({ baseUrl, pages }: NewCustomerPlan, { secretKey }: PrintNewCustomerShown): string | null =>
  (pages.account ? accountLink({ baseUrl, secretKey }) : undefined) ?? null;

function printNewCustomer(terminal: Terminal, plan: NewCustomerPlan, made: PrintNewCustomerShown): void {
  const { print, remark, reveal } = terminal;
  reveal(made.secretKey);
  const sent = plan.contact === undefined ? '' : ` to ${plan.contact}`;
  print(
    `customer ${plan.account} is made. Send this${sent}; the key is stored nowhere and is not shown again:`,
  );
  print('');
  for (const line of messageOf(plan, made)) print(line === '' ? '' : `  ${line}`);
  print('');
  if (plan.baseUrl === undefined) remark('The address of the relay is not known here: put it in.');
  if (made.isLinked && !plan.pages.account) remark(noAccountPage);
  if (made.grant?.problem !== undefined) remark(made.grant.problem);
  else if (made.grant?.isApplied === false)
    remark('The grant is not applied yet. It will be within minutes: see `customer show`.');
}

/** @param made undefined: it was not made */
function newCustomerFacts(
  { reveal }: Terminal,
  plan: NewCustomerPlan,
  made: PrintNewCustomerShown | undefined,
): object {
  const { account, grant, contact } = plan;
  const facts = { account, contact: contact ?? null, granted: grant ? formatYuan(grant.amount) : null };
  if (!made) return facts;
  reveal(made.secretKey);
  return {
    ...facts,
    applied: made.grant?.isApplied ?? null,
    key: made.secretKey,
    hash: made.hash,
    hint: made.hint,
    message: messageOf(plan, made).join('\n'),
    ...(made.isLinked && { link: linkOf(plan, made) }),
  };
}

// Prints what is left to do for an account that was closed.

function printClosed({ print }: Terminal, { account, next }: CloseAccountPlan): void {
  print(`${account} is closed; its rows, grants and ledger stay.`);
  if (next.length === 0) return print('Nothing is left to pay back.');
  print('To pay back what is left:');
  for (const [at, step] of next.entries()) print(`  ${at + 1}. ${step}`);
}

const closeFacts = ({ account, available, reserved, keys, next }: CloseAccountPlan) => ({
  account,
  available: formatYuan(available),
  reserved: formatYuan(reserved),
  keys_disabled: keys,
  next,
});
