/** The commands of `channel`: upstreams that the relay calls. */
import type { Command } from 'commander';
import {
  planNewChannel,
  type ChannelInput,
  planSwitchChannel,
  carryOutStoreSecret,
  planStoreSecret,
} from '../../../../shared/operate/channels/edit-channel.ts';
import {
  channelActivity,
  listChannels,
  isFailing,
  isIdle,
  noActivity,
  type ActivityView,
  type ChannelActivity,
  type ListedChannel,
} from '../../../../shared/operate/channels/list-channels.ts';
import {
  carryOutProbe,
  planProbe,
  type ProbeResult,
} from '../../../../shared/operate/channels/probe-channel.ts';
import { planSync, type SyncInput, type SyncPlan } from '../../../../shared/operate/channels/sync-models.ts';
import {
  carryOutChannelTest,
  planChannelTest,
  type TestInput,
  type ChannelTest,
} from '../../../../shared/operate/channels/test-channel.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { channelTypeNames } from '../../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../../shared/upstreams/types/channel-types.ts';
import { type CommandContext, writes, listing } from '../command.ts';
import { addOwnAttributes, ownAttributesIn, parseList, parseMapper, parseNumber } from '../option-values.ts';
import { configWriting, waiting, type WaitOption } from '../print-config.ts';
import { addSet, addShow, type RowGroup } from './rows.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import { type Terminal, readSecret } from '../terminal.ts';

const notes = `
A secret is given as a reference, never as the value: ssm:/relay/<stack>/<name>, secretsmanager:<stack>/<name>,
or, on a local stack only, env:NAME of a variable that RELAY_ENV_SECRETS lists. Store the value first:
  printf %s "$OPENAI_API_KEY" | npx --no relay-ops secret put openai --stack relay`;

export function addChannelCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const channel = program
    .command('channel')
    .description('upstreams that the relay calls')
    .addHelpText('after', notes);

  addAdding(channel, context);

  listing(channel.command('list').description('list channels in the order in which they are tried')).action(
    onTables(async ({ ports, terminal }) => {
      const [channels, activity] = await Promise.all([listChannels(ports), channelActivity(ports)]);
      printChannels(terminal, channels, activity);
    }),
  );

  addChannelEdits(channel, context);
  addAskingCommands(channel, context);

  context.writing(
    channel
      .command('sync')
      .description(
        'make the models of a channel those that its upstream lists; shows the difference, asks, writes',
      )
      .argument('<id>', 'id of the channel')
      .option('--only <a,b*>', 'add only these; * stands for anything (default: all)', parseList)
      .option('--keep', 'remove none')
      .option('--secret-env <NAME>', secretEnvMeans),
    async ({ ports, terminal }, id: string, options: Omit<SyncInput, 'id'>) => {
      const plan = await planSync(ports, { ...options, id });
      const { added, removed, models } = plan;
      plan.listWarnings.forEach(terminal.remark);
      return writes({
        plan,
        preview: (terminal) => printSyncPlan(terminal, plan),
        carryOut: () => carryOutWrites(ports, plan),
        print: ({ print }) => print(`${models.length} models are written; live within 10 seconds.`),
        facts: () => ({ added, removed, models }),
      });
    },
  );
}

const secretEnvMeans = 'take the key from this environment variable instead of the reference';

function addAdding(channel: Command, { writing }: CommandContext): void {
  const adding = channel
    .command('add')
    .description('add a channel, switched on; live within 10 seconds')
    .requiredOption('--id <id>', 'its name in this table and in logs')
    .requiredOption('--models <a,b>', 'model names that clients use', parseList)
    .option('--type <type>', `${channelTypeNames.join(', ')} (default: ${defaultChannelType})`)
    .option(
      '--endpoint <url>',
      'base address, mostly ending in /v1 (default: that of the type, if it has one)',
    );
  addOwnAttributes(adding)
    .option('--name <text>', 'for people')
    .option('--secret <reference>', 'where the key of the upstream is stored (default: none is sent)')
    .option('--priority <n>', 'higher is tried first (default: 0)', parseNumber)
    .option('--weight <n>', 'share among channels of the same priority (default: 1)', parseNumber)
    .option('--mapper <pub=up,...>', "public model name = the upstream's name for it", parseMapper)
    .option('--disabled', 'switched off (state false)')
    .option('--replace', 'write over the row with this id, all its attributes');
  writing(adding, async ({ ports }, options: AddOptions, command: Command) => {
    const { replace, ...input } = options;
    const attributes = ownAttributesIn(command);
    const plan = await planNewChannel(ports, { ...input, attributes }, replace ? 'replace' : 'refuse');
    return writes({
      plan,
      carryOut: () => carryOutWrites(ports, plan),
      print: ({ print }) => print(`Try it: npx --no relay-ops channel test ${input.id}`),
      facts: () => ({ id: input.id }),
    });
  });
}

type AddOptions = ChannelInput & { replace?: boolean };

/** Those that send chat requests, which the upstream charges for. */
function addAskingCommands(channel: Command, { onTables, writing }: CommandContext): void {
  channel
    .command('test')
    .description('send one tiny real chat request, with the settings of the channel')
    .argument('<id>', 'id of the channel; it may be switched off')
    .option('--model <name>', 'public model name (default: the first of the channel)')
    .option('--secret-env <NAME>', secretEnvMeans)
    .action(
      onTables(async ({ ports, terminal }, id: string, options: Omit<TestInput, 'id'>) => {
        const plan = await planChannelTest(ports, { ...options, id });
        terminal.warn(plan.warnings);
        plan.effect.forEach(terminal.print);
        printChannelTest(terminal, await carryOutChannelTest(ports, plan));
      }),
    );

  writing(
    channel
      .command('probe')
      .description(
        'ask the upstream what it can, by a dozen small real calls at most; says the cost, asks, writes _can on the row',
      )
      .argument('<id>', 'id of the channel; it may be switched off')
      .option('--model <name>', 'public model name to ask (default: the first of the channel)')
      .option('--secret-env <NAME>', secretEnvMeans),
    async ({ ports }, id: string, options: Omit<TestInput, 'id'>) => {
      const plan = await planProbe(ports, { ...options, id });
      return writes({
        plan,
        carryOut: () => carryOutProbe(ports, plan),
        print: printProbe,
        facts: probeFacts,
      });
    },
  );
}

// Commands that change one channel, and switch it.

const channels: RowGroup = { table: 'channels', noun: 'a channel', keyOf: (written) => written };

function addChannelEdits(channel: Command, context: CommandContext): void {
  addShow(channel, context, channels);
  addSet(channel, context, channels);
  for (const on of [true, false])
    context.writing(
      waiting(
        channel
          .command(on ? 'on' : 'off')
          .description(
            on ? 'switch a channel on' : 'switch a channel off; says which models nobody else serves',
          )
          .argument('<id>', 'as `channel list` shows it'),
      ),
      async (run, id: string, options: WaitOption) =>
        configWriting(run, await planSwitchChannel(run.ports, { id, on }), options),
    );
}

// Prints channels and the answers of their upstreams.

function printChannels(terminal: Terminal, channels: ListedChannel[], view: ActivityView): void {
  const { channels: active, problems, since } = view;
  const activity = new Map(channels.map(({ id }) => [id, active.get(id.slice(0, 200)) ?? noActivity]));
  const of = (id: string) => activity.get(id) ?? noActivity;
  terminal.printList({
    columns: [
      'id',
      'state',
      'priority',
      'weight',
      'endpoint',
      'secret',
      'models',
      'problem',
      'warning',
      'last_call',
      'last_failure',
      'calls_14d',
      'failures_14d',
      'idle',
      'failing',
    ],
    rows: channels.map((channel) => withActivity(channel, of(channel.id), view)),
    table: () => [
      ['ID', 'STATE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'LAST CALL', 'FAILED', 'MODELS'],
      ...channels.map((channel) => [
        channel.id,
        isFailing(channel, of(channel.id)) ? 'failing' : channel.state,
        String(channel.priority ?? '-'),
        String(channel.weight ?? '-'),
        channel.endpoint ?? '-',
        channel.secret?.join(' ') || '-',
        of(channel.id).lastCall ?? '-',
        of(channel.id).lastFailure ?? '-',
        channel.models?.join(' ') || '-',
      ]),
    ],
    empty: 'no channels: see `npx --no relay-ops channel add --help`',
  });
  if (terminal.format !== 'text') return;
  problems.forEach(terminal.remark);
  for (const { id, state, problem, warning } of channels) {
    const { failing, lastCall } = of(id);
    if (isFailing({ state }, of(id)))
      terminal.remark(
        `${id} fails: all of its ${failing} calls of ${lastCall} did; \`channel test ${id}\` asks it`,
      );
    if (isIdle(state, of(id), view)) terminal.remark(`${id}: no call since ${since}`);
    if (problem !== undefined) terminal.remark(`${id} is not used: ${problem}`);
    if (warning !== undefined) terminal.remark(`${id}: ${warning}`);
  }
}

const withActivity = (channel: ListedChannel, activity: ChannelActivity, view: ActivityView): object =>
  Object.assign({}, channel, {
    last_call: activity.lastCall ?? null,
    last_failure: activity.lastFailure ?? null,
    calls_14d: activity.calls,
    failures_14d: activity.failures,
    // null: unknown.
    idle: isIdle(channel.state, activity, view) ?? null,
    failing: isFailing(channel, activity),
  });

/** Throws a Failure when no chat completion came back. */
function printChannelTest(terminal: Terminal, { status, elapsedMs, answer, body }: ChannelTest): void {
  const { format, print, printJson } = terminal;
  if (format === 'json') printJson({ status, elapsed_ms: elapsedMs, answer: answer ?? null });
  print(`status ${status} after ${elapsedMs} ms`);
  if (answer === undefined) throw new Failure(`no chat completion came back: ${body || 'an empty body'}`);
  print(`answer (${answer.model}): ${answer.text || `nothing (${answer.ending})`}`);
}

/** In the order in which people ask. */
const capabilities = [
  'tools',
  'parallel_tools',
  'json_schema',
  'images',
  'usage_streaming',
  'system_anywhere',
  'efforts',
  'dialects',
] as const;

function printProbe(
  { print, printTable, warn }: Terminal,
  { can, sent, unasked, warnings }: ProbeResult,
): void {
  printTable(capabilities.map((name) => [name, foundText(can[name])]));
  if (unasked.length > 0) print(`not asked, since no call was left: ${unasked.join(', ')}`);
  print(`${sent} calls were sent.`);
  warn(warnings);
  print('written as _can; live within 10 seconds.');
}

const probeFacts = (result: ProbeResult | undefined) =>
  result
    ? { can: result.can, calls: result.sent, unasked: result.unasked, row_warnings: result.warnings }
    : {};

function foundText(found: boolean | string[] | undefined): string {
  if (found === undefined) return 'unknown';
  if (typeof found === 'boolean') return found ? 'yes' : 'no';
  return found.join(', ') || 'none';
}

function printSyncPlan({ print }: Terminal, { added, removed }: SyncPlan): void {
  [...added.map((model) => `+ ${model}`), ...removed.map((model) => `- ${model}`)].forEach(print);
}

// The commands of `secret`. The value comes from standard input or a hidden answer, never from the command line.

export function addSecretCommands(program: Command, { writing }: CommandContext): void {
  const secret = program
    .command('secret')
    .description('keys of upstreams, stored in AWS')
    .addHelpText(
      'after',
      '\nRows name a secret by its reference; the value is stored in AWS and shown by no command. The name is yours to choose:\n`openai` becomes /relay/<stack>/openai. On a local stack there is no store: rows have env:NAME there.',
    );

  writing(
    secret
      .command('put')
      .description('store a value from standard input, encrypted, and print its reference')
      .argument('<name>', 'what it is called within the stack')
      .option('--secretsmanager', 'in Secrets Manager (default: SSM Parameter Store, which costs nothing)')
      .option('--replace', 'write over the value that is there'),
    async ({ ports, terminal }, name: string, options: { secretsmanager?: boolean; replace?: boolean }) => {
      const { secretsmanager: managed = false, replace = false } = options;
      const plan = planStoreSecret(ports, { name, managed, replace });
      return writes({
        plan,
        carryOut: async () => carryOutStoreSecret(ports, plan, await readSecret(terminal)),
        print: ({ print }, reference) => print(reference),
        facts: () => ({ reference: plan.reference }),
      });
    },
  );
}
