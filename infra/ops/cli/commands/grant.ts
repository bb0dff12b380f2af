/** The commands of `grant`: top-ups, corrections, redeem codes and lists of grants. Also waits until a grant is applied, and reports it. */
import { formatYuan } from '../../../../shared/billing/money.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import {
  carryOutGrant,
  planGrantAmount,
  listGrants,
  showGrant,
  type GrantInput,
  type GrantMade,
  type GrantPlan,
  type GrantsWanted,
} from '../../../../shared/operate/customers/grants.ts';
import {
  batchNames,
  carryOutCodes,
  codeNames,
  listBatches,
  listCodes,
  madeNames,
  planCodes,
  planRevokeCodes,
  type CodesInput,
} from '../../../../shared/operate/customers/codes.ts';
import { Failure, formatCount, formatMoney } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { grantSheet } from '../../fields/sheet.ts';
import { describeGrantOutcome, isGrantWritten } from '../../outcomes.ts';
import {
  auditors,
  defineChange,
  limitRows,
  limitOf,
  printOutcome,
  defineRows,
  defineView,
  defineWrite,
  type CommandGroup,
} from '../command.ts';
import { parseCount, parseDecimalText, parseNumber } from '../option-values.ts';
import { formatText, nameValues, type Column } from '../terminal.ts';
import { defineApply } from './sheets.ts';

export type WithWait<Input> = Input & { wait: number };

export const applyWait = {
  '--wait <seconds>': ['how long to wait until the grant is applied', parseNumber, 15],
} as const;

type GrantOptions = Omit<GrantInput, 'account' | 'amount'>;

export const defineGrantWrite = (ports: OperatorPorts, plan: GrantPlan, wait: number) =>
  defineWrite({
    plan,
    preview({ print }) {
      const { balance, amount } = plan;
      if (balance !== undefined) print(`Balance: ${formatMoney(balance)} → ${formatMoney(balance + amount)}`);
    },
    carryOut: () => carryOutGrant(ports, plan, wait * 1000),
    print: (terminal, made) => printOutcome(terminal, describeGrantOutcome(plan, made)),
    facts: (made) => formatGrantJson(plan, made),
  });

/** `written` false: an earlier run wrote it. `available`: the balance afterwards, null where it is not known yet. */
export const formatGrantJson = ({ account, grantId, amount }: GrantPlan, made: GrantMade | undefined) => ({
  account,
  grant_id: grantId,
  amount: formatYuan(amount),
  ...(made && {
    written: isGrantWritten(made.made),
    applied: made.isApplied,
    available: made.available === undefined ? null : formatYuan(made.available),
  }),
});

const grantColumns: Column<WrittenGrant>[] = [
  ['account', 'ACCOUNT', ({ account }) => account],
  ['grant_id', 'GRANT', ({ grantId }) => grantId],
  ['amount', 'AMOUNT', ({ amount }) => amount],
  ['applied', 'APPLIED', ({ applied }) => applied ?? null, ({ applied }) => applied ?? 'pending'],
  ['problem', 'PROBLEM', ({ problem }) => problem, ({ problem }) => problem ?? ''],
  ['reason', 'REASON', ({ reason }) => reason, ({ reason }) => reason ?? ''],
];

const columnsOf = <Name extends string>(names: readonly Name[]): Column<Readonly<Record<Name, unknown>>>[] =>
  names.map((name) => [name, name.toUpperCase(), (row) => row[name]]);

export const grantCommands: CommandGroup = {
  name: 'grant',
  does: 'top up and correct balances, create redeem codes',
  notes:
    '\nAmounts are in yuan, with up to 9 decimals. A negative amount takes money back. An id is credited only once, so a\ncommand with --id is safe to repeat.',
  commands: [
    defineChange('new', {
      does: 'credit a customer once',
      takes: {
        '<account>': 'customer from `customer list`',
        '<amount>': 'yuan; negative to take money back',
        '--reason <text>': 'shown to the customer',
        '--id <id>': 'id of the grant; each id is credited only once (default: generated)',
        '--new': 'create the customer if it does not exist',
        ...applyWait,
      },
      examples: [
        'grant new acme 100 --reason "invoice 4711" --id invoice-4711',
        'grant new acme -2.5 --reason "correction of invoice 4711"',
      ],
      async plan({ ports }, account: string, amount: string, { wait, ...options }: WithWait<GrantOptions>) {
        return defineGrantWrite(ports, await planGrantAmount(ports, { account, amount, ...options }), wait);
      },
    }),
    defineView('list', {
      does: 'list grants, pending ones first',
      lists: true,
      takes: {
        ...limitRows('grants'),
        '--account <name>': 'only this customer (default: all, which reads the whole table)',
        '--open': 'only pending and rejected grants',
      },
      examples: ['grant list --account acme', 'grant list --open', 'grant list --csv'],
      policies: auditors,
      async run({ ports, terminal }, options: Partial<GrantsWanted>) {
        const wanted = { ...options, limit: limitOf(terminal.format, options.limit) };
        const { grants, count } = await listGrants(ports, wanted);
        terminal.printList(grants, { columns: grantColumns, empty: 'No grants.' });
        if (count > grants.length) terminal.remark(`${count} grants in total: use --limit to see more`);
      },
    }),
    defineView('show', {
      does: 'show a grant and whether it is applied',
      takes: { '<account>': 'customer from `customer list`', '<id>': 'id of the grant' },
      examples: ['grant show acme invoice-4711'],
      policies: auditors,
      async run({ ports, terminal }, account: string, id: string) {
        const found = await showGrant(ports, { account, id });
        const values = nameValues(grantColumns, found);
        const rows = Object.entries(values).filter(([, value]) => value !== undefined);
        terminal.printAs(values, () =>
          terminal.printTable(rows.map(([name, value]) => [name, formatText(value)])),
        );
        if (found.problem !== undefined) throw new Failure(`the grant was rejected: ${found.problem}`);
      },
    }),
    defineApply('grant', grantSheet),
    defineChange('codes', {
      does: 'create a batch of redeem codes; they are shown once',
      lists: true,
      needs: {
        '--count <n>': ['number of codes', parseCount],
        '--amount <yuan>': ['yuan that each code credits', parseDecimalText],
      },
      takes: {
        '--batch <name>': 'name of the batch (default: generated)',
        '--expires <time>': 'expiry, such as 90d or 2027-12-31 (default: never)',
      },
      examples: ['grant codes --count 100 --amount 10 --csv > codes.csv'],
      async plan({ ports }, options: CodesInput) {
        const plan = await planCodes(ports, options);
        return defineWrite({
          plan,
          carryOut: () => carryOutCodes(ports, plan),
          print(terminal, codes) {
            terminal.printList(codes, { columns: columnsOf(madeNames), empty: '' });
            terminal.remark('Save these codes now; they can’t be shown again.');
          },
          facts: (codes) => ({ batch: plan.facts.batch, codes }),
        });
      },
    }),
    defineView('batches', {
      does: 'list batches of redeem codes, or the codes and redemptions of one batch',
      lists: true,
      takes: { '[batch]': 'name of a batch' },
      examples: ['grant batches', 'grant batches spring --csv'],
      async run({ ports, terminal }, batch: string | undefined) {
        const { problems, ...found } =
          batch === undefined ? await listBatches(ports) : await listCodes(ports, batch);
        if ('batches' in found)
          terminal.printList(found.batches, { columns: columnsOf(batchNames), empty: 'No codes.' });
        else
          terminal.printList(found.codes, {
            columns: columnsOf(codeNames),
            empty: `No codes of batch ${batch}.`,
          });
        terminal.warn(problems);
      },
    }),
    defineChange('revoke', {
      does: 'revoke the unredeemed codes of a batch, or one code',
      takes: { '<name>': 'batch, id of a code, or the code itself' },
      examples: ['grant revoke spring'],
      async plan(run, name: string) {
        const plan = await planRevokeCodes(run.ports, name);
        return defineWrite({
          ...defineRows(run, plan, { message: '', facts: {} }),
          print: ({ print }, made) => print(`Revoked ${formatCount(made.length, 'code')}.`),
          facts: (made = []) => ({ revoked: made.length }),
        });
      },
    }),
  ],
};
