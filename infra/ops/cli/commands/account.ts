/** The commands of `account`: balances, top-ups, refunds and plans. */
import type { Command } from 'commander';
import {
  carryOutGrant,
  planGrantAmount,
  type GrantInput,
  type GrantMade,
  type GrantPlan,
  listGrants,
  showGrant,
  type GrantsWanted,
} from '../../../../shared/operate/customers/grants.ts';
import { planRefundCharge, type RefundInput } from '../../../../shared/operate/customers/refund-charge.ts';
import {
  planSetPlan,
  type SetPlanInput,
  type SetPlanPlan,
} from '../../../../shared/operate/customers/edit-account.ts';
import { viewCustomer } from '../../../../shared/operate/customers/customer-view.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { type CommandContext, writes, limiting, limitOf, listing, countProgress } from '../command.ts';
import { addAccountResponses } from './response.ts';
import { printCustomer } from './customer.ts';
import { parseNumber } from '../option-values.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { RowWrite } from '../../../../shared/operate/operator-ports.ts';
import type { Terminal } from '../terminal.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import { Failure } from '../../../../shared/operate/plan.ts';

export function addAccountCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const account = program
    .command('account')
    .description('who pays: balances, top-ups, refunds and plans')
    .addHelpText(
      'after',
      '\nAmounts are yuan with at most 9 decimals. A negative amount is a correction. The same --id is never applied twice,\nso a command with --id may be repeated.',
    );

  account
    .command('show')
    .description('show balance, plan use, calls under way, keys, the last grants and 30 days of use')
    .argument('<account>', 'as in the table accounts')
    .action(
      onTables(async ({ ports, terminal }, name: string) =>
        printCustomer(terminal, await viewCustomer(ports, name)),
      ),
    );

  addAccountResponses(account, context);
  addGrants(account, context);

  context.writing(
    account
      .command('plan')
      .description('give an account a plan, change it, or end it; live within 30 seconds')
      .argument('<account>', 'as in the table accounts')
      .option('--level <n>', '1, 2 or 3', parseNumber)
      .option('--since <time>', 'months are counted from here (default: as it is, else today)')
      .option('--until <time>', 'covers no call from then on (default: no end)')
      .option('--none', 'take the plan away')
      .option('--new', 'make the account when there is none'),
    async ({ ports }, account: string, options: Omit<SetPlanInput, 'account'>) => {
      const plan = await planSetPlan(ports, { account, ...options });
      return writes({
        plan,
        carryOut: () => carryOutWrites(ports, plan),
        print: (terminal) => printPlanSet(terminal, plan),
        facts: () => planFacts(plan),
      });
    },
  );
}

/** `wait`: seconds. */
type GrantOptions = Omit<GrantInput, 'account' | 'amount'> & { wait: number };

/** `wait`: seconds. */
type RefundOptions = Omit<RefundInput, 'id'> & { wait: number };

function addGrants(account: Command, { writing }: CommandContext): void {
  writing(
    account
      .command('grant')
      .description('add to a balance, exactly once')
      .argument('<account>', 'as in the table accounts')
      .argument('<amount>', 'yuan; below 0 is a correction')
      .option('--reason <text>', 'shown to the customer in their usage')
      .option('--id <id>', 'names the grant: the same id is applied once (default: a new one)')
      .option('--new', 'make the account when there is none')
      .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15),
    async ({ ports }, ...[account, amount, { wait, ...options }]: [string, string, GrantOptions]) => {
      const plan = await planGrantAmount(ports, { account, amount, ...options });
      return writes({
        plan,
        carryOut: () => carryOutGrant(ports, plan, wait * 1000),
        print: (terminal, made) => printGrant(terminal, plan, made),
        facts: (made) => grantFacts(plan, made),
      });
    },
  );

  writing(
    account
      .command('refund')
      .description('refund the charge of a call, whole or in part; never more than was charged')
      .argument('<id>', 'of the ledger row: the header x-request-id, or the id of an answer')
      .option('--amount <yuan>', 'only this much (default: all that was not refunded yet)')
      .option('--reason <text>', 'shown to the customer in their usage')
      .option('--part <number>', 'which part of the refund this is: safe to repeat', parseNumber)
      .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15),
    async ({ ports }, id: string, { wait, ...options }: RefundOptions) => {
      const plan = await planRefundCharge(ports, { id, ...options });
      return writes({
        plan,
        carryOut: () => carryOutGrant(ports, plan, wait * 1000),
        print: (terminal, made) => printGrant(terminal, plan, made),
        facts: (made) => grantFacts(plan, made),
      });
    },
  );
}

// Prints grants and plans that were written.

export function printGrant(
  { print, remark }: Terminal,
  { account, grantId, amount }: GrantPlan,
  { made, isApplied, available }: GrantMade,
): void {
  if (isWritten(made)) print(`grant ${grantId} of ${formatYuan(amount)} yuan is written.`);
  else remark(`grant ${grantId} was written before; nothing is written again`);
  if (!isApplied) return remark('Not applied yet. It will be within minutes: see `account show`.');
  const balance = available === undefined ? '' : `${formatYuan(available)} yuan are available now`;
  print(`It is applied. ${account}: ${balance}.`);
}

/** An earlier run may have written it. */
const isWritten = (made: RowWrite[]): boolean => made.some(({ table }) => table === 'grants');

/** `written` false: an earlier run wrote it. `available`: the balance afterwards, null where it is not known yet. */
export const grantFacts = ({ account, grantId, amount }: GrantPlan, made: GrantMade | undefined) => ({
  account,
  grant_id: grantId,
  amount: formatYuan(amount),
  ...(made && {
    written: isWritten(made.made),
    applied: made.isApplied,
    available: made.available === undefined ? null : formatYuan(made.available),
  }),
});

function printPlanSet(terminal: Terminal, { account, plan }: SetPlanPlan): void {
  if (!plan) return terminal.print(`${account} holds no plan; live within 30 seconds.`);
  const end = plan.until === undefined ? 'without an end' : `until ${plan.until}`;
  terminal.print(
    `${account} holds plan ${plan.level}, months counted from ${plan.since}, ${end}; live within 30 seconds.`,
  );
}

const planFacts = ({ account, plan }: SetPlanPlan) => ({ account, plan: plan ?? null });

// The commands of `grant`: top-ups as they were written, and whether they are applied. `account grant` writes one.

export function addGrantCommands(program: Command, { onTables }: CommandContext): void {
  const grant = program.command('grant').description('top-ups and corrections: what was written and applied');
  limiting(
    listing(grant.command('list').description('list grants, those that are not applied first')),
    'grants',
  )
    .option('--account <name>', 'only those of this account (default: reads the whole table)')
    .option('--open', 'only those that are not applied, or that the relay does not take')
    .action(
      onTables(async ({ ports, terminal }, options: Partial<GrantsWanted>) => {
        const wanted = { ...options, limit: limitOf(terminal.format, options.limit) };
        const { grants, count } = await listGrants(ports, wanted, countProgress(terminal, 'grants read'));
        printGrants(terminal, grants);
        if (count > grants.length) terminal.remark(`${count} in all: see --limit`);
      }),
    );
  grant
    .command('show')
    .description('show one grant, and whether it is applied')
    .argument('<account>', 'as in the table grants')
    .argument('<id>', 'of the grant')
    .action(
      onTables(async ({ ports, terminal }, account: string, id: string) => {
        const found = await showGrant(ports, { account, id });
        if (terminal.format === 'json') terminal.printJson(grantJson(found));
        else terminal.printTable(Object.entries(grantJson(found)).map(([name, text]) => [name, text ?? '-']));
        if (found.problem !== undefined) throw new Failure(`the relay does not take it: ${found.problem}`);
      }),
    );
}

const grantJson = ({ account, grantId, amount, applied, problem }: WrittenGrant) => ({
  account,
  grant_id: grantId,
  amount,
  applied: applied ?? null,
  ...(problem !== undefined && { problem }),
});

const printGrants = (terminal: Terminal, grants: WrittenGrant[]): void =>
  terminal.printList({
    columns: ['account', 'grant_id', 'amount', 'applied', 'problem'],
    rows: grants.map(grantJson),
    table: () => [
      ['ACCOUNT', 'GRANT', 'AMOUNT', 'APPLIED', 'PROBLEM'],
      ...grants.map(({ account, grantId, amount, applied, problem }) => [
        account,
        grantId,
        amount,
        applied ?? 'not yet',
        problem ?? '',
      ]),
    ],
    empty: 'no grants',
  });
