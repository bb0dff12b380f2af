/** The commands of `response`: stored responses. Content is shown only to who says why, which is recorded. */
import {
  sumResponses,
  storedKinds,
  carryOutDeleteResponse,
  planDeleteResponse,
  findResponse,
  carryOutShowContent,
  planShowContent,
} from '../../../../shared/operate/responses.ts';
import type { ResponseHead } from '../../../../shared/relay/ports/stored.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { defineChange, operators, defineView, defineWrite, type CommandGroup } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { formatCount } from '../../../../shared/operate/plan.ts';

interface ResponseOptions {
  account?: string;
}

interface ShowOptions extends ResponseOptions {
  content?: boolean;
  reason?: string;
}

const taken = {
  '<id>': 'response id (resp-...) or request id',
  '--account <name>': 'customer (default: from the ledger row)',
};
const exampleId = 'resp-01jd3k5m7n9p1r3t5v7x9z1b3d';

const totalCommand = defineView('total', {
  does: 'count the stored responses of a customer and their size',
  lists: true,
  takes: { '<account>': 'customer from `customer list`' },
  examples: ['response total acme'],
  policies: operators,
  async run({ ports, terminal }, account: string) {
    const view = await sumResponses(ports, account);
    const { sums, expired, lastExpires } = view;
    const rows = storedKinds.map((kind) => Object.assign({ kind }, sums[kind]));
    const text = (): void => {
      terminal.print(`Stored responses of ${account}`);
      terminal.printFacts([
        ...rows.map(({ kind, count, bytes }) => [
          kind,
          `${count}${kind === 'events' ? ' batches' : ''}, ${bytes} bytes`,
        ]),
        ['last expiry', lastExpires === undefined ? '-' : timeOf(lastExpires)],
      ]);
      if (expired > 0)
        terminal.remark(`${formatCount(expired, 'expired item')}; DynamoDB deletes them within days`);
    };
    terminal.printAs(view, text, [['kind', 'count', 'bytes'], rows]);
  },
});

export const responseCommands: CommandGroup = {
  name: 'response',
  does: 'inspect and delete stored responses',
  notes:
    '\nThe customer of a response is looked up in the ledger. Free calls have no ledger row: use --account for them. Every read\nwith --content is recorded with your name and reason.',
  commands: [
    totalCommand,
    defineView('show', {
      does: 'show the status of a stored response, and its content with --content',
      takes: {
        ...taken,
        '--content': 'also show input and output; the access is recorded',
        '--reason <text>': 'reason for reading the content (required with --content)',
      },
      examples: [`response show ${exampleId}`, `response show ${exampleId} --content --reason "ticket 4711"`],
      policies: operators,
      async run({ ports, terminal }, id: string, options: ShowOptions) {
        const head = await findResponse(ports, { id, account: options.account });
        if (!options.content) return printResponse(terminal, head);
        const plan = await planShowContent(ports, head, options.reason);
        // The stored call and the encrypted state are left out: they are of no use to a person.
        const { head: whole, body } = await carryOutShowContent(ports, plan);
        const { input, response } = body;
        plan.effect.forEach(terminal.remark);
        if (terminal.format === 'json') return terminal.printJson({ ...whole, input, response });
        printResponse(terminal, whole);
        terminal.printJson({ input, output: response['output'] });
      },
    }),
    defineChange('delete', {
      does: 'permanently delete a stored response and its events',
      takes: taken,
      examples: [`response delete ${exampleId} --account acme --yes`],
      async plan({ ports }, id: string, { account }: ResponseOptions) {
        const plan = planDeleteResponse(await findResponse(ports, { id, account }));
        return defineWrite({
          plan,
          carryOut: () => carryOutDeleteResponse(ports, plan),
          print: ({ print }) => plan.changes.forEach((deleted) => print(`Deleted ${deleted.id}.`)),
          facts: () => ({ ...plan.changes[0] }),
        });
      },
    }),
  ],
};

function printResponse(terminal: Terminal, head: ResponseHead): void {
  if (terminal.format === 'json') return terminal.printJson(head);
  const [previous] = head.ancestors;
  terminal.print(`Response ${head.id}`);
  terminal.printFacts([
    ['account', head.account],
    ['status', head.status],
    ['created', timeOf(head.createdAt)],
    ['expires', timeOf(head.expires)],
    ['turn', previous === undefined ? `${head.turn}` : `${head.turn}, after ${previous}`],
    ['conversation', `${head.conversationLength} characters of JSON`],
    ['background', head.background ? describeBackground(head.background) : 'no'],
  ]);
}

function describeBackground({
  streamed,
  run,
  until,
  events,
}: NonNullable<ResponseHead['background']>): string {
  const state = run === undefined ? 'waiting for a run' : 'claimed by a run';
  const kept = streamed ? `, ${events === undefined ? 'events stored' : formatCount(events, 'event')}` : '';
  return `${state}${kept}${events === undefined ? `, until ${timeOf(until)}` : ''}`;
}

const timeOf = (seconds: number): string => isoTime(seconds * 1000);
