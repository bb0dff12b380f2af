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
  '--wait <seconds>': ['how long to wait until the grant is applied', parseNumber, 15],
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
  ['applied', 'APPLIED', ({ applied }) => applied ?? null, ({ applied }) => applied ?? 'pending'],
  ['problem', 'PROBLEM', ({ problem }) => problem, ({ problem }) => problem ?? ''],
];

export const grantCommands: CommandGroup = {
  name: 'grant',
  does: 'top up and correct balances',
  notes:
    '\nAmounts are in yuan, with up to 9 decimals. A negative amount takes money back. An id is credited only once, so a\ncommand with --id is safe to repeat.',
  commands: [
    changes('new', {
      does: 'credit an account once',
      takes: {
        '<account>': 'customer from `customer list`',
        '<amount>': 'yuan; negative to take money back',
        '--reason <text>': 'shown to the customer',
        '--id <id>': 'id of the grant; each id is credited only once (default: generated)',
        '--new': 'create the account if it does not exist',
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
      does: 'list grants, pending ones first',
      lists: true,
      takes: {
        ...limiting('grants'),
        '--account <name>': 'only this account (default: all, reads the whole table)',
        '--open': 'only pending and rejected grants',
      },
      examples: ['grant list --account acme', 'grant list --open', 'grant list --csv'],
      policies: auditing,
      async run({ ports, terminal }, options: Partial<GrantsWanted>) {
        const wanted = { ...options, limit: limitOf(terminal.format, options.limit) };
        const { grants, count } = await listGrants(ports, wanted);
        terminal.printList(grants, { columns: grantColumns, empty: 'No grants.' });
        if (count > grants.length) terminal.remark(`${count} grants in total: use --limit to see more`);
      },
    }),
    shows('show', {
      does: 'show a grant and whether it is applied',
      takes: { '<account>': 'customer from `customer list`', '<id>': 'id of the grant' },
      examples: ['grant show acme invoice-4711'],
      policies: auditing,
      async run({ ports, terminal }, account: string, id: string) {
        const found = await showGrant(ports, { account, id });
        const values = namedValues(grantColumns, found);
        const rows = Object.entries(values).filter(([, value]) => value !== undefined);
        terminal.printAs(values, () =>
          terminal.printTable(rows.map(([name, value]) => [name, cellText(value)])),
        );
        if (found.problem !== undefined) throw new Failure(`the grant was rejected: ${found.problem}`);
      },
    }),
  ],
};
