/** The commands of `channel`: upstreams that the relay calls. */
import type { Command } from 'commander';
import { planNewChannel, type ChannelInput } from '../../../shared/operate/channels/add-channel.ts';
import { channelActivity } from '../../../shared/operate/channels/channel-activity.ts';
import { listChannels } from '../../../shared/operate/channels/list-channels.ts';
import {
  carryOutProbe,
  planProbe,
  type ProbeInput,
} from '../../../shared/operate/channels/probe/probe-channel.ts';
import { planSync, type SyncInput } from '../../../shared/operate/channels/sync-models.ts';
import {
  carryOutChannelTest,
  planChannelTest,
  type TestInput,
} from '../../../shared/operate/channels/test-channel.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { channelTypeNames } from '../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../shared/upstreams/types/channel-types.ts';
import type { CommandContext } from './command/command-context.ts';
import { writes } from './command/writing.ts';
import { listing } from './command/common-options.ts';
import { printChannels, printChannelTest, printProbe, printSyncPlan, probeFacts } from './print/channels.ts';
import { addChannelEdits } from './rows/channel-edit-commands.ts';
import { addOwnAttributes, ownAttributesIn } from './command/own-attributes.ts';
import { parseList, parseMapper, parseNumber } from './terminal/option-values.ts';

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
    async ({ ports }, id: string, options: Omit<ProbeInput, 'id'>) => {
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
