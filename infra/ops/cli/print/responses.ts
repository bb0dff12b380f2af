/** Prints stored responses. Only `printContent` shows what customers wrote and were answered. */
import {
  storedKinds,
  type AccountResponses,
} from '../../../../shared/operate/responses/account-responses.ts';
import type { ResponseHead, StoredResponse } from '../../../../shared/relay/ports/stored/stored-response.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { csvRows } from '../terminal/csv.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printResponse(terminal: Terminal, head: ResponseHead): void {
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
export function printContent(terminal: Terminal, { head, body }: StoredResponse): void {
  const { input, response } = body;
  if (terminal.format === 'json') return terminal.printJson({ ...head, input, response });
  printResponse(terminal, head);
  terminal.printJson({ input, output: response['output'] });
}

export function printAccountResponses(terminal: Terminal, view: AccountResponses): void {
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
