/** The commands of `grant`: top-ups as they were written, and whether they are applied. `account grant` writes one. */
import type { Command } from 'commander';
import type { WrittenGrant } from '../../../../shared/billing/grant.ts';
import { listGrants, showGrant, type GrantsWanted } from '../../../../shared/operate/accounts/list-grants.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { CommandContext } from '../command/command-context.ts';
import { limiting, limitOf, listing } from '../command/common-options.ts';
import { countProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';

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
