/** The commands of `customer`: who buys from this relay. Top-ups are commands of `grant`, refunds of `request`. */
import { Option } from 'commander';
import { formatYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import { sumReserved } from '../../../../shared/billing/quota-item.ts';
import {
  planCloseAccount,
  planEraseAccount,
  planReopenAccount,
} from '../../../../shared/operate/customers/close-account.ts';
import { planEditAccount } from '../../../../shared/operate/customers/edit-account.ts';
import {
  listCustomers,
  listSpending,
  type CustomerPage,
  type ListedCustomer,
  type SpendingCustomer,
  type SpendingOrder,
  type SpendingPage,
} from '../../../../shared/operate/customers/customer-list.ts';
import {
  useDays,
  viewCustomer,
  type CustomerView,
} from '../../../../shared/operate/customers/customer-view.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
  buildAccountLink,
  writeWelcome,
  type CustomerMade,
  type NewCustomerInput,
  type NewCustomerPlan,
} from '../../../../shared/operate/customers/new-customer.ts';
import {
  carryOutProfile,
  describeProfile,
  planProfile,
} from '../../../../shared/operate/customers/profiles.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import {
  formatCount,
  formatMoney,
  formatWrittenMoney,
  quoteShellWord,
  usageFailure,
} from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { AccountPlan } from '../../../../shared/wire/public-api.ts';
import { accountFields, newAccountFields } from '../../fields/account-fields.ts';
import { customerSheet } from '../../fields/sheet.ts';
import { describeClosure, describeErasure } from '../../outcomes.ts';
import {
  createPreview,
  defineChange,
  limitRows,
  limitOf,
  defineRows,
  defineView,
  defineWrite,
  type CommandGroup,
  type CommandRun,
  type Policies,
  viewers,
} from '../command.ts';
import { parseList, parseNumber } from '../option-values.ts';
import { formatText, nameValues, type Column, type Terminal } from '../terminal.ts';
import { figureColumns, hashText, hintText, shortenHash } from './key.ts';
import { defineApply, defineExport } from './sheets.ts';
import { formatHelp, parseAttributes, attributesAbout } from './rows.ts';
import { textIn } from '../../../../shared/wire/json.ts';

/** `wait`: seconds. */
type NewOptions = Omit<NewCustomerInput, 'account' | 'attributes'> & { wait: number; link?: boolean };

const accountArgument = { '<account>': 'as `customer list` shows it' };

/** A restore looks at customers, too. */
const listPolicies: Policies = [...viewers, 'restore'];

/** Live within 30 seconds. */
const defineEdit = async (run: CommandRun, account: string, attributes: RawRow) => {
  const plan = await planEditAccount(run.ports, { account, attributes });
  return defineRows(run, plan, { message: 'Saved; live within 30 s.', facts: { account } });
};

export const customerCommands: CommandGroup = {
  name: 'customer',
  does: 'manage customers',
  notes: `
A customer is an account with keys and grants. Top up with \`grant new\`; create more keys with \`key new\`.
\`customer new\` is safe to repeat after an interruption: its grant is credited only once.`,
  commands: [
    defineChange('new', {
      does: 'create a customer with a first grant and a key; prints a welcome message to send',
      takes: {
        '<name>': 'customer name; it cannot be changed later',
        '[attributes...]': attributesAbout,
        '--grant <yuan>': 'initial balance (default: none)',
        '--reason <text>': 'reason for the grant, shown to the customer',
        '--models <a,b>': ['models the key may call (default: all)', parseList],
        '--link': 'include a link that opens the account page with the key',
        '--wait <seconds>': ['how long to wait until the grant is applied', parseNumber, 15],
      },
      notes: formatHelp(newAccountFields),
      examples: [
        'customer new acme contact.email=ops@acme.example --grant 50 --link',
        'customer new acme "note=contract 4711" rpm=600 plan.level=1 --models gpt-4o,gpt-4o-mini --yes',
      ],
      async plan(
        { ports, terminal },
        account: string,
        words: string[],
        { wait, link = false, ...input }: NewOptions,
      ) {
        const attributes = words.length === 0 ? {} : parseAttributes(words, newAccountFields);
        if (Object.hasOwn(attributes, 'models'))
          throw usageFailure('models belong to the key, not to the customer: use --models a,b');
        const plan = await planNewCustomer(ports, { account, attributes, ...input });
        return defineWrite({
          plan,
          preview: createPreview(ports, plan),
          carryOut: () => terminal.revealMade(carryOutNewCustomer(ports, plan, wait * 1000)),
          print(shown, made) {
            const sent = plan.contact === undefined ? '' : ` to ${plan.contact}`;
            shown.print(
              `Created customer ${account}. Send this message${sent} now; the key can't be shown again:`,
            );
            const { message, warnings } = writeWelcome(plan, made, link);
            shown.printMessage(message);
            warnings.forEach(shown.remark);
          },
          facts: (made) => formatNewCustomer(plan, made, link),
        });
      },
    }),
    defineView('list', {
      policies: listPolicies,
      does: 'list customers with balance, plan, spend this month and last call',
      lists: true,
      takes: {
        ...limitRows('customers'),
        '--sort <by>': new Option(
          '--sort <by>',
          'name; spent: highest spend this month first; dry: lowest days of balance left first',
        )
          .choices(['name', 'spent', 'dry'])
          .default('name'),
        '--name <text>': 'only names that contain this text (only with --sort name)',
        '--after <next>': 'continue after the previous page (only with --sort name)',
      },
      examples: ['customer list --sort spent --limit 10', 'customer list --sort dry', 'customer list --csv'],
      async run(run, options: ListOptions) {
        const { terminal } = run;
        const page = await readPage(run, options);
        const customers: ShownCustomer[] = page.customers;
        terminal.printList(customers, {
          columns: columnsOf(page.month),
          empty: 'No customers. Create one with `npx --no relay-ops customer new <name>`.',
        });
        page.problems.forEach(terminal.remark);
        for (const { account, problem, unknown } of customers)
          if (problem !== undefined || unknown !== undefined)
            terminal.remark(`${account}: ${problem ?? unknown}`);
        const more = describeMore(page);
        if (more !== undefined) terminal.remark(more);
      },
    }),
    defineView('show', {
      does: 'show balance, plan, calls in flight, keys, recent grants and 30 days of usage',
      takes: accountArgument,
      examples: ['customer show acme'],
      run: async ({ ports, terminal }, name: string) =>
        printCustomer(terminal, await viewCustomer(ports, name)),
    }),
    defineChange('set', {
      does: "change a customer's note, contact, limits, alert or plan",
      takes: { ...accountArgument, '<attributes...>': attributesAbout },
      notes: formatHelp(accountFields),
      examples: [
        'customer set acme "note=pays by invoice" rpm=600',
        'customer set acme plan.level=1 plan.since=2026-11-01 plan.until=2027-11-01',
      ],
      async plan(run, account: string, written: string[]) {
        const row = await run.ports.tables.get('accounts', account);
        return defineEdit(run, account, parseAttributes(written, accountFields, row));
      },
    }),
    defineChange('off', {
      does: 'disable a customer: all keys are rejected within 30 s',
      takes: accountArgument,
      examples: ['customer off acme --yes'],
      plan: (run, account: string) => defineEdit(run, account, { enabled: false }),
    }),
    defineChange('on', {
      does: 'enable a customer again, with the keys that `customer close` disabled',
      takes: accountArgument,
      examples: ['customer on acme'],
      async plan(run, account: string) {
        const plan = { ...(await planReopenAccount(run.ports, account)), questions: [] };
        return defineRows(run, plan, { message: 'Saved; live within 30 s.', facts: { account } });
      },
    }),
    defineChange('close', {
      does: 'close a customer: disables all keys and shows how to pay back the balance; deletes nothing',
      takes: accountArgument,
      examples: ['customer close acme'],
      async plan(run, account: string) {
        const plan = await planCloseAccount(run.ports, account);
        const [available, reserved] = [formatYuan(plan.available), formatYuan(plan.reserved)];
        const facts = { account, available, reserved, keys_disabled: plan.keys, next: plan.next };
        return defineRows(run, plan, { message: describeClosure(plan).join('\n'), facts });
      },
    }),
    defineChange('erase', {
      does: 'erase the contact data of a closed customer, and list the data that stays',
      takes: accountArgument,
      examples: ['customer erase acme'],
      async plan(run, account: string) {
        const plan = await planEraseAccount(run.ports, account);
        const facts = { account, remains: plan.remains };
        return defineRows(run, plan, { message: describeErasure(plan).join('\n'), facts });
      },
    }),
    defineChange('profile', {
      does: "register a customer with a channel's provider, or show its status there",
      takes: {
        ...accountArgument,
        '--channel <id>': 'default: the first enabled channel whose provider registers customers',
        '--name <text>': "the company's name, for the provider (default: none)",
      },
      notes: `
Anthropic restricts or bans only the registered customer; without a profile it may restrict your whole organisation.`,
      examples: ['customer profile acme', 'customer profile acme --name "Acme Corp" --channel claude --yes'],
      async plan({ ports }, account: string, options: { channel?: string; name?: string }) {
        const plan = await planProfile(ports, { account, ...options });
        return defineWrite({
          plan,
          carryOut: () => carryOutProfile(ports, plan),
          print: ({ print }, profile) => describeProfile(account, profile).forEach(print),
          facts: (profile = plan.profile) => ({ account, ...profile }),
        });
      },
    }),
    defineExport('customer', customerSheet, listPolicies),
    defineApply('customer', customerSheet),
  ],
};

interface ListOptions {
  sort: 'name' | SpendingOrder;
  limit?: number;
  name?: string;
  after?: string;
}

async function readPage(
  { ports, terminal }: CommandRun,
  { sort, name, after, ...options }: ListOptions,
): Promise<CustomerPage | SpendingPage> {
  const limit = limitOf(terminal.format, options.limit);
  if (sort === 'name') {
    let page = await listCustomers(ports, { name, after, limit });
    if (limit !== Infinity) return page;
    // A table of more than one request goes on in its own order.
    while (page.next !== undefined) {
      const more = await listCustomers(ports, { name, after: page.next, limit });
      const problems = [...page.problems, ...more.problems];
      page = { ...more, customers: [...page.customers, ...more.customers], problems };
    }
    return page;
  }
  if (after !== undefined) throw usageFailure('--after requires --sort name');
  if (name !== undefined) throw usageFailure(`--name can't be combined with --sort ${sort}`);
  return listSpending(ports, { order: sort, limit });
}

function describeMore(page: CustomerPage | SpendingPage): string | undefined {
  const shown = page.customers.length;
  if ('active' in page)
    return page.active > shown
      ? `${page.active} customers had a call or a grant this month: use --limit to see more`
      : undefined;
  const { next, count } = page;
  if (next !== undefined)
    return `${count === undefined ? 'More customers' : `${count} customers in total`}: continue with --after '${next}'`;
  return count !== undefined && count > shown
    ? `Showing ${shown} of ${count} customers: use --limit to see more`
    : undefined;
}

type ShownCustomer = ListedCustomer & Partial<Pick<SpendingCustomer, 'daysLeft'>>;

const columnsOf = (month: string): Column<ShownCustomer>[] => [
  ['account', 'ACCOUNT', ({ account }) => account],
  ['state', 'STATE', ({ state }) => state],
  ['available', 'AVAILABLE', ({ item }) => (item ? formatYuan(item.available) : null)],
  ['reserved', '', ({ item }) => (item ? formatYuan(sumReserved(item)) : null)],
  ['spent_this_month', `SPENT ${month}`, (row) => formatYuan(row.month.amounts.charged ?? 0n)],
  ['granted_this_month', '', (row) => formatYuan(row.month.amounts.granted ?? 0n)],
  ['calls_this_month', 'CALLS', (row) => row.month.counts.calls ?? 0],
  ['plan', 'PLAN', ({ plan }) => plan?.level ?? null, ({ plan }) => (plan ? `level ${plan.level}` : '-')],
  ['last_call', 'LAST CALL', ({ lastCall }) => (lastCall === undefined ? null : isoTime(lastCall * 1000))],
  [
    'days_left',
    'DAYS LEFT',
    ({ daysLeft }) => (daysLeft === undefined ? undefined : Number(formatDays(daysLeft))),
    ({ daysLeft }) => (daysLeft === undefined ? '-' : formatDays(daysLeft)),
  ],
  ['note', 'NOTE', ({ note }) => note, ({ note }) => note ?? ''],
  ['problem', '', ({ problem, unknown }) => problem ?? unknown],
];

const formatDays = (days: number): string => (days < 10 ? days.toFixed(1) : days.toFixed(0));

const keysShown = 20;
const grantsShown = 5;
const modelsShown = 5;

function printCustomer(terminal: Terminal, view: CustomerView): void {
  const isText = terminal.format !== 'json';
  if (isText) printText(terminal, view);
  else terminal.printJson(formatCustomerJson(view));
  terminal.warn(view.warnings);
  const { account, keys, hasAllKeys, grants, hasAllGrants } = view;
  if (!hasAllKeys || (isText && keys.length > keysShown))
    terminal.remark(`There may be more keys: see \`key list --account ${quoteShellWord(account)}\`.`);
  if (!hasAllGrants || (isText && grants.length > grantsShown))
    terminal.remark(`There are more grants: see \`grant list --account ${quoteShellWord(account)}\`.`);
}

function formatCustomerJson(view: CustomerView) {
  const { account, isOff, item, plan, attributes, written, keys, hasAllKeys, grants, hasAllGrants } = view;
  const { from, to, sum, days, models } = view.use;
  return {
    account,
    state: isOff ? 'off' : 'on',
    available: formatYuan(item.available),
    reserved: formatYuan(sumReserved(item)),
    spent: formatYuan(item.spent),
    granted: formatYuan(item.granted),
    ...(item.metered !== undefined && { metered: formatYuan(item.metered) }),
    open: item.open.size,
    settled: item.settled,
    plan,
    attributes,
    written_by: textIn(written._by) || null,
    written_at: textIn(written._at) || null,
    keys: keys.map(({ row, state }) => ({ hint: hintText(row['hint']), hash: hashText(row['hash']), state })),
    all_keys: hasAllKeys,
    grants,
    all_grants: hasAllGrants,
    // Whole days of UTC, the first and the last included.
    use: {
      from,
      to,
      ...formatFiguresJson(sum),
      days: days.map(({ name, figures }) => Object.assign({ day: name }, formatFiguresJson(figures))),
      models: models.map(({ name, figures }) => Object.assign({ model: name }, formatFiguresJson(figures))),
    },
  };
}

const formatFiguresJson = (figures: DailyFigures): object => ({
  ...nameValues(figureColumns, figures),
  cached_tokens: figures.counts.cached_tokens ?? 0,
});

function printText(terminal: Terminal, view: CustomerView): void {
  const { account, isOff, item, plan, attributes, written, keys, grants, use } = view;
  const { isWhole, models } = use;
  terminal.print(`Customer ${account}${isOff ? ' (disabled)' : ''}`);
  terminal.printFacts([
    ['available', formatMoney(item.available)],
    ['reserved', `${formatMoney(sumReserved(item))} for ${formatCount(item.open.size, 'call')} in flight`],
    ['spent', `${formatMoney(item.spent)} for ${formatCount(item.settled, 'call')}`],
    ['granted', formatMoney(item.granted)],
    ...(item.metered === undefined
      ? []
      : [['metered', `${formatMoney(item.metered)} of the spend, not taken from the balance`] as const]),
    ['used', `${describeUse(use.sum)} ${isWhole ? `in the last ${useDays} days` : `since ${use.from}`}`],
    ...models.slice(0, modelsShown).map((each) => ['', describeModelUse(each)]),
    ...(models.length > modelsShown
      ? [['', `and ${formatCount(models.length - modelsShown, 'more model')}: --json lists all, also by day`]]
      : []),
    ['plan', plan ? describeAccountPlan(plan) : 'none'],
    ...(plan?.items ?? []).map((entry) => [
      '',
      `${entry.name}: ${entry.used} of ${entry.value < 0 ? 'unlimited calls' : formatCount(entry.value, 'call')}, resets ${isoTime(entry.resets_at * 1000)}`,
    ]),
    ...Object.entries(attributes).map(([name, value]) => [name, formatText(value)]),
    ...(written._at === undefined ? [] : [['changed', describeWritten(written)]]),
    ...keys.slice(0, keysShown).map((key, at) => [at === 0 ? 'keys' : '', describeKeyState(key)]),
    ...grants.slice(0, grantsShown).map((grant, at) => [at === 0 ? 'grants' : '', describeGrant(grant)]),
  ]);
}

const describeUse = ({ counts, amounts }: DailyFigures): string =>
  `${formatMoney(amounts.charged ?? 0n)} for ${formatCount(counts.calls ?? 0, 'call')} (${counts.failures ?? 0} failed)`;

const describeModelUse = ({ name, figures }: Summed): string => {
  const {
    prompt_tokens: input = 0,
    cached_tokens: cached = 0,
    completion_tokens: output = 0,
  } = figures.counts;
  return `${name}: ${describeUse(figures)}, ${formatCount(input, 'token')} in (${cached} cached), ${output} out`;
};

const describeAccountPlan = ({ level, until }: AccountPlan): string =>
  `level ${level}${until === null ? '' : `, until ${isoTime(until * 1000)}`}`;

const describeKeyState = ({ row, state, why }: KeyView): string =>
  `${hintText(row['hint'])} (hash ${shortenHash(row['hash'])}): ${state}${state === 'usable' ? `, ${why}` : ''}`;

function describeGrant({ grantId, amount, applied, problem }: WrittenGrant): string {
  if (problem !== undefined) return `${grantId}: ${formatWrittenMoney(amount)}, rejected: ${problem}`;
  return `${grantId}: ${formatWrittenMoney(amount)}, ${applied === undefined ? 'pending' : `applied ${applied}`}`;
}

const describeWritten = ({ _by, _at }: CustomerView['written']): string =>
  `${textIn(_at)}${_by === undefined ? '' : ` by ${textIn(_by)}`}`;

function formatNewCustomer(plan: NewCustomerPlan, made: CustomerMade | undefined, link: boolean): object {
  const { account, grant, contact, baseUrl, pages } = plan;
  const facts = { account, contact: contact ?? null, granted: grant ? formatYuan(grant.amount) : null };
  if (!made) return facts;
  const { secretKey, hash, hint } = made;
  return {
    ...facts,
    applied: made.grant?.isApplied ?? null,
    ...(made.grant?.problem !== undefined && { problem: made.grant.problem }),
    key: secretKey,
    hash,
    hint,
    message: writeWelcome(plan, made, link).message.join('\n'),
    ...(link && { link: (pages.account ? buildAccountLink(baseUrl, secretKey) : undefined) ?? null }),
  };
}
