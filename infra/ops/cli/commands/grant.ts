/** The commands of `grant`: top-ups and corrections, what was written and applied; and how a grant is waited for and said. */
import { formatYuan } from '../../../../shared/billing/price.ts';
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
import { Failure } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { grantSaid, isGrantWritten } from '../../outcomes.ts';
import {
  auditing,
  changes,
  limiting,
  limitOf,
  printSaid,
  shows,
  writes,
  type CommandGroup,
} from '../command.ts';
import { parseNumber } from '../option-values.ts';
import { cellText, namedValues, type Column } from '../terminal.ts';

export type Waiting<Input> = Input & { wait: number };

export const applied = {
  '--wait <seconds>': ['how long to wait until it is applied', parseNumber, 15],
} as const;

type GrantOptions = Omit<GrantInput, 'account' | 'amount'>;

export const granting = (ports: OperatorPorts, plan: GrantPlan, wait: number) =>
  writes({
    plan,
    carryOut: () => carryOutGrant(ports, plan, wait * 1000),
    print: (terminal, made) => printSaid(terminal, grantSaid(plan, made)),
    facts: (made) => grantFacts(plan, made),
  });

/** `written` false: an earlier run wrote it. `available`: the balance afterwards, null where it is not known yet. */
export const grantFacts = ({ account, grantId, amount }: GrantPlan, made: GrantMade | undefined) => ({
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
  ['applied', 'APPLIED', ({ applied }) => applied ?? null, ({ applied }) => applied ?? 'not yet'],
  ['problem', 'PROBLEM', ({ problem }) => problem, ({ problem }) => problem ?? ''],
];

export const grantCommands: CommandGroup = {
  name: 'grant',
  does: 'top-ups and corrections of balances',
  notes:
    '\nAmounts are yuan with at most 9 decimals. A negative amount is a correction. The same --id is never applied twice,\nso a command with --id may be repeated.',
  commands: [
    changes('new', {
      does: 'add to a balance, exactly once',
      takes: {
        '<account>': 'as in the table accounts',
        '<amount>': 'yuan; below 0 is a correction',
        '--reason <text>': 'shown to the customer in their usage',
        '--id <id>': 'names the grant: the same id is applied once (default: a new one)',
        '--new': 'make the account when there is none',
        ...applied,
      },
      examples: [
        'grant new acme 100 --reason "invoice 4711" --id invoice-4711',
        'grant new acme -2.5 --reason "correction of invoice 4711"',
      ],
      async plan({ ports }, account: string, amount: string, { wait, ...options }: Waiting<GrantOptions>) {
        return granting(ports, await planGrantAmount(ports, { account, amount, ...options }), wait);
      },
    }),
    shows('list', {
      does: 'list grants, those that are not applied first',
      lists: true,
      takes: {
        ...limiting('grants'),
        '--account <name>': 'only those of this account (default: reads the whole table)',
        '--open': 'only those that are not applied, or that the relay does not take',
      },
      examples: ['grant list --account acme', 'grant list --open', 'grant list --csv'],
      policies: auditing,
      async run({ ports, terminal }, options: Partial<GrantsWanted>) {
        const wanted = { ...options, limit: limitOf(terminal.format, options.limit) };
        const { grants, count } = await listGrants(ports, wanted);
        terminal.printList(grants, { columns: grantColumns, empty: 'no grants' });
        if (count > grants.length) terminal.remark(`${count} in all: see --limit`);
      },
    }),
    shows('show', {
      does: 'show one grant, and whether it is applied',
      takes: { '<account>': 'as in the table grants', '<id>': 'of the grant' },
      examples: ['grant show acme invoice-4711'],
      policies: auditing,
      async run({ ports, terminal }, account: string, id: string) {
        const found = await showGrant(ports, { account, id });
        const values = namedValues(grantColumns, found);
        const rows = Object.entries(values).filter(([, value]) => value !== undefined);
        terminal.printAs(values, () =>
          terminal.printTable(rows.map(([name, value]) => [name, cellText(value)])),
        );
        if (found.problem !== undefined) throw new Failure(`the relay does not take it: ${found.problem}`);
      },
    }),
  ],
};
