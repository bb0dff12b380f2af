/** The commands of `customer`: who buys from this relay. Balances, refunds and plans in detail are commands of `account`. */
import { Option, type Command } from 'commander';
import { planCloseAccount } from '../../../../shared/operate/customers/close-account.ts';
import { listCustomers } from '../../../../shared/operate/customers/customer-list.ts';
import { viewCustomer } from '../../../../shared/operate/customers/customer-view.ts';
import { planEditAccount } from '../../../../shared/operate/customers/edit-account.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
  type NewCustomerInput,
} from '../../../../shared/operate/customers/new-customer.ts';
import {
  balanceOrders,
  sortCustomers,
  type BalanceOrder,
} from '../../../../shared/operate/customers/sorted-customers.ts';
import { listSpending, type SpendingOrder } from '../../../../shared/operate/customers/spending-customers.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import type { RawRow } from '../../../../shared/operate/row-tables.ts';
import type { CommandContext, Run } from '../command/command-context.ts';
import { limiting, limitOf, listing } from '../command/common-options.ts';
import { writes } from '../command/writing.ts';
import { parseList, parseNumber } from '../terminal/option-values.ts';
import { countProgress } from '../terminal/progress.ts';
import { printCustomer } from './print-customer.ts';
import { closeFacts, printClosed } from './print-closed.ts';
import { newCustomerFacts, printNewCustomer } from './print-new-customer.ts';
import { printCustomers } from './print-customers.ts';

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
    const isWhole = limit === Infinity;
    for (let next = page.next; isWhole && next !== undefined; next = page.next) {
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
