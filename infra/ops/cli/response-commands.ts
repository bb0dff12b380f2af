/** The commands of `response`: stored responses of customers. Content is shown only to who says why, which is recorded. */
import type { Command } from 'commander';
import { accountResponses } from '../../../shared/operate/responses/account-responses.ts';
import {
  carryOutDeleteResponse,
  planDeleteResponse,
} from '../../../shared/operate/responses/delete-response.ts';
import { findResponse } from '../../../shared/operate/responses/find-response.ts';
import { carryOutShowContent, planShowContent } from '../../../shared/operate/responses/show-content.ts';
import type { CommandContext } from './command/command-context.ts';
import { listing } from './command/common-options.ts';
import { writes } from './command/writing.ts';
import { printAccountResponses, printContent, printResponse } from './print/responses.ts';
import { countProgress } from './terminal/progress.ts';

interface ResponseOptions {
  account?: string;
}

interface ShowOptions extends ResponseOptions {
  content?: boolean;
  reason?: string;
}

export function addResponseCommands(program: Command, { onTables, writing }: CommandContext): void {
  const response = program
    .command('response')
    .description('stored responses of customers')
    .addHelpText(
      'after',
      '\nThe account of a response is found in the ledger; calls that are free and not counted have no row there: name it with\n--account. What is shown with --content is recorded in the table runtime, with who read it.',
    );

  response
    .command('show')
    .description('show where a stored response stands; its content only if that is asked for')
    .argument('<id>', 'resp-..., or its request id')
    .option('--account <name>', 'whose it is (default: that of its ledger row)')
    .option('--content', 'show its items too; this is recorded')
    .option('--reason <text>', 'why they are read, with --content')
    .action(
      onTables(async ({ ports, terminal }, id: string, options: ShowOptions) => {
        const head = await findResponse(ports, { id, account: options.account });
        if (!options.content) return printResponse(terminal, head);
        const plan = await planShowContent(ports, head, options.reason);
        const found = await carryOutShowContent(ports, plan);
        plan.effect.forEach(terminal.remark);
        return printContent(terminal, found);
      }),
    );

  writing(
    response
      .command('delete')
      .description('delete a stored response and its events, for good')
      .argument('<id>', 'resp-..., or its request id')
      .option('--account <name>', 'whose it is (default: that of its ledger row)'),
    async ({ ports }, id: string, { account }: ResponseOptions) => {
      const plan = planDeleteResponse(await findResponse(ports, { id, account }));
      return writes({
        plan,
        carryOut: () => carryOutDeleteResponse(ports, plan),
        print: ({ print }) => plan.changes.forEach((deleted) => print(`${deleted.id} is deleted`)),
        facts: () => ({ ...plan.changes[0] }),
      });
    },
  );
}

/** The command `account responses`. */
export function addAccountResponses(account: Command, { onTables }: CommandContext): void {
  listing(account.command('responses'))
    .description('count what is stored for an account, and its bytes; no content is read')
    .argument('<account>', 'as in the table accounts')
    .action(
      onTables(async ({ ports, terminal }, name: string) => {
        const onProgress = countProgress(terminal, 'items read');
        printAccountResponses(terminal, await accountResponses(ports, name, onProgress));
      }),
    );
}
