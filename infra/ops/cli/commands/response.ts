/** The commands of `response`: stored responses of customers. Content is shown only to who says why, which is recorded. */
import type { Command } from 'commander';
import {
  accountResponses,
  carryOutDeleteResponse,
  planDeleteResponse,
  findResponse,
  carryOutShowContent,
  planShowContent,
  storedKinds,
  type AccountResponses,
} from '../../../../shared/operate/responses.ts';
import { type CommandContext, listing, writes, countProgress } from '../command.ts';
import type { ResponseHead, StoredResponse } from '../../../../shared/relay/ports/stored.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { csvRows, type Terminal } from '../terminal.ts';

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

// Prints stored responses. Only `printContent` shows what customers wrote and were answered.

function printResponse(terminal: Terminal, head: ResponseHead): void {
  if (terminal.format === 'json') return terminal.printJson(head);
  terminal.print(`response ${head.id}`);
  terminal.printTable(factsOf(head));
}

function factsOf({ background, ...head }: ResponseHead): string[][] {
  const [previous] = head.ancestors;
  return [
    ['  account', head.account],
    ['  status', head.status],
    ['  created', timeOf(head.createdAt)],
    ['  expires', timeOf(head.expires)],
    ['  turn', previous === undefined ? `${head.turn}` : `${head.turn}, after ${previous}`],
    ['  conversation', `${head.conversationLength} characters as JSON`],
    ['  background', background ? backgroundText(background) : 'no'],
  ];
}

function backgroundText({ streamed, run, until, events }: NonNullable<ResponseHead['background']>): string {
  const begun = run === undefined ? 'no run has claimed it' : 'claimed by a run';
  const kept = streamed ? `, ${events === undefined ? 'events are kept' : `${events} events`}` : '';
  return `${begun}${kept}${events === undefined ? `, until ${timeOf(until)}` : ''}`;
}

/** What a run needs and the sealed state are left out: they say nothing to a person. */
function printContent(terminal: Terminal, { head, body }: StoredResponse): void {
  const { input, response } = body;
  if (terminal.format === 'json') return terminal.printJson({ ...head, input, response });
  printResponse(terminal, head);
  terminal.printJson({ input, output: response['output'] });
}

function printAccountResponses(terminal: Terminal, view: AccountResponses): void {
  if (terminal.format === 'json') return terminal.printJson(view);
  const { account, sums, expired, lastExpires } = view;
  if (terminal.format === 'csv')
    return terminal.printCsv(
      csvRows(
        ['kind', 'count', 'bytes'],
        storedKinds.map((kind) => ({ kind, ...sums[kind] })),
      ),
    );
  terminal.print(`stored for account ${account}`);
  terminal.printTable([
    ...storedKinds.map((kind) => [
      `  ${kind}`,
      `${sums[kind].count}${kind === 'events' ? ' batches' : ''}, ${sums[kind].bytes} bytes`,
    ]),
    ['  last of it expires', lastExpires === undefined ? '-' : timeOf(lastExpires)],
  ]);
  if (expired > 0) terminal.remark(`${expired} items have expired; DynamoDB removes them within days`);
}

const timeOf = (seconds: number): string => isoTime(seconds * 1000);
