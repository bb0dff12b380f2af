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
import { printAccountResponses, printContent, printResponse } from './print/responses.ts';
import { approve } from './terminal/approve.ts';
import type { JsonOption } from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';

const examples = `
The account of a response is found in the ledger; calls that are free and not counted have no row there: name it with
--account. What is shown with --content is recorded in the table runtime, with the access key that read it.

Examples:
  npm run ops -- response show resp-01jd3k5m7n9p1r3t5v7x9z1b3d
  npm run ops -- response show resp-01jd3k5m7n9p1r3t5v7x9z1b3d --content --reason "ticket 4711"
  npm run ops -- response delete resp-01jd3k5m7n9p1r3t5v7x9z1b3d --account acme --yes
  npm run ops -- account responses acme`;

interface ResponseOptions {
  account?: string;
}

interface ShowOptions extends ResponseOptions, JsonOption {
  content?: boolean;
  reason?: string;
}

export function addResponseCommands(program: Command, { terminal, onTables }: CommandContext): void {
  const response = program
    .command('response')
    .description('stored responses of customers')
    .addHelpText('after', examples);

  response
    .command('show')
    .description('show where a stored response stands; its content only if that is asked for')
    .argument('<id>', 'resp-..., or its request id')
    .option('--account <name>', 'whose it is (default: that of its ledger row)')
    .option('--content', 'show its items too; this is recorded')
    .option('--reason <text>', 'why they are read, with --content')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, id: string, options: ShowOptions) => {
        const head = await findResponse(ports, { id, account: options.account });
        if (!options.content) return printResponse(terminal, head, options);
        const plan = await planShowContent(ports, head, options.reason);
        const found = await carryOutShowContent(ports, plan);
        plan.effect.forEach(terminal.remark);
        return printContent(terminal, found, options);
      }),
    );

  response
    .command('delete')
    .description('delete a stored response and its events, for good')
    .argument('<id>', 'resp-..., or its request id')
    .option('--account <name>', 'whose it is (default: that of its ledger row)')
    .option('--dry-run', 'show what would be deleted and delete nothing')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, id: string, options: ResponseOptions & { dryRun?: boolean; yes?: boolean }) => {
        const plan = planDeleteResponse(await findResponse(ports, { id, account: options.account }));
        plan.effect.forEach(terminal.remark);
        if (!(await approve(terminal, plan, options))) return;
        await carryOutDeleteResponse(ports, plan);
        for (const deleted of plan.changes) terminal.print(`${deleted.id} is deleted`);
      }),
    );
}

/** The command `account responses`. */
export function addAccountResponses(account: Command, { terminal, onTables }: CommandContext): void {
  account
    .command('responses')
    .description('count what is stored for an account, and its bytes; no content is read')
    .argument('<account>', 'as in the table accounts')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, name: string, options: JsonOption) => {
        const onProgress = countProgress(terminal, 'items read');
        printAccountResponses(terminal, await accountResponses(ports, name, onProgress), options);
      }),
    );
}
