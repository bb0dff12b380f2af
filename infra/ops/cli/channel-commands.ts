/** The commands of `channel`: upstreams that the relay calls. */
import type { Command } from 'commander';
import { planAddChannel, type ChannelInput } from '../../../shared/operate/channels/add-channel.ts';
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
import { Failure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { channelTypeNames } from '../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../shared/upstreams/types/channel-types.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import type { CommandContext } from './command/command-context.ts';
import { printChannels, printProbe, printSyncPlan } from './print/channels.ts';
import { addOwnAttributes, ownAttributesIn } from './command/own-attributes.ts';
import { parseList, parseMapper, parseNumber, type JsonOption } from './terminal/option-values.ts';
import type { Terminal } from './terminal/terminal.ts';

const examples = `
A secret is given as a reference, never as the value: ssm:/relay/<stack>/<name>, secretsmanager:<stack>/<name>,
or, on a local stack only, env:NAME. Store the value first:
  printf %s "$OPENAI_API_KEY" | npm run ops -- secret put openai --stack relay

Examples:
  npm run ops -- channel add --id openai --endpoint https://api.openai.com/v1 --models gpt-4o,gpt-4o-mini --secret env:OPENAI_API_KEY
  npm run ops -- channel add --stack relay --id openai --endpoint https://api.openai.com/v1 --models gpt-4o --secret ssm:/relay/relay/openai
  npm run ops -- channel add --id ds --endpoint https://api.deepseek.com/v1 --models smart --mapper smart=deepseek-chat --priority 10
  npm run ops -- channel list
  npm run ops -- channel add --stack relay --id claude --type anthropic --models claude-sonnet-4-6 --secret ssm:/relay/relay/anthropic
  npm run ops -- channel test openai --model gpt-4o-mini
  npm run ops -- channel probe openai --model gpt-4o-mini
  npm run ops -- channel sync openai --only 'gpt-5*,o4*'`;

export function addChannelCommands(program: Command, context: CommandContext): void {
  const { terminal, onTables } = context;
  const channel = program
    .command('channel')
    .description('upstreams that the relay calls')
    .addHelpText('after', examples);

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
    .option('--replace', 'write over the row with this id, all its attributes')
    .option('--yes', 'do not ask before a row is replaced')
    .action(
      onTables((ports, options: AddOptions, command: Command) =>
        add(terminal, ports, { ...options, attributes: ownAttributesIn(command) }),
      ),
    );

  channel
    .command('list')
    .description('list channels in the order in which they are tried')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, options: JsonOption) =>
        printChannels(terminal, await listChannels(ports), options),
      ),
    );

  addAskingCommands(channel, context);

  channel
    .command('sync')
    .description(
      'make the models of a channel those that its upstream lists; shows the difference, asks, writes',
    )
    .argument('<id>', 'id of the channel')
    .option('--only <a,b*>', 'add only these; * stands for anything (default: all)', parseList)
    .option('--keep', 'remove none')
    .option('--secret-env <NAME>', 'take the key from this environment variable instead of the reference')
    .option('--dry-run', 'show the difference and write nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, id: string, options: Omit<SyncOptions, 'id'>) =>
        sync(terminal, ports, { ...options, id }),
      ),
    );
}

/** Those that send chat requests, which the upstream charges for. */
function addAskingCommands(channel: Command, { terminal, onTables }: CommandContext): void {
  channel
    .command('test')
    .description('send one tiny real chat request, with the settings of the channel')
    .argument('<id>', 'id of the channel; it may be switched off')
    .option('--model <name>', 'public model name (default: the first of the channel)')
    .option('--secret-env <NAME>', 'take the key from this environment variable instead of the reference')
    .action(
      onTables(async (ports, id: string, options: Omit<TestInput, 'id'>) =>
        test(terminal, ports, { ...options, id }),
      ),
    );

  channel
    .command('probe')
    .description(
      'ask the upstream what it can, by a dozen small real calls at most; says the cost, asks, writes _can on the row',
    )
    .argument('<id>', 'id of the channel; it may be switched off')
    .option('--model <name>', 'public model name to ask (default: the first of the channel)')
    .option('--secret-env <NAME>', 'take the key from this environment variable instead of the reference')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, id: string, options: Omit<ProbeOptions, 'id'>) =>
        probe(terminal, ports, { ...options, id }),
      ),
    );
}

type AddOptions = ChannelInput & { replace?: boolean; yes?: boolean };

async function add(terminal: Terminal, ports: OperatorPorts, options: AddOptions): Promise<void> {
  const { replace, yes, ...input } = options;
  const plan = await planAddChannel(ports, input, replace ? 'replace' : 'refuse');
  terminal.warn(plan.warnings);
  if (!(await approve(terminal, plan, { yes }))) return;
  await carryOutWrites(ports, plan);
  plan.effect.forEach(terminal.print);
  terminal.print(`Try it: npm run ops -- channel test ${input.id}`);
}

async function test({ print, warn }: Terminal, ports: OperatorPorts, input: TestInput): Promise<void> {
  const plan = await planChannelTest(ports, input);
  warn(plan.warnings);
  plan.effect.forEach(print);
  const { status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
  print(`status ${status} after ${elapsedMs} ms`);
  if (answer === undefined) throw new Failure(`no chat completion came back: ${body || 'an empty body'}`);
  print(`answer (${answer.model}): ${answer.text || `nothing (${answer.ending})`}`);
}

type ProbeOptions = ProbeInput & Pick<ApproveOptions, 'yes'>;

async function probe(terminal: Terminal, ports: OperatorPorts, options: ProbeOptions): Promise<void> {
  const plan = await planProbe(ports, options);
  plan.effect.forEach(terminal.print);
  if (!(await approve(terminal, plan, options))) return;
  const result = await carryOutProbe(ports, plan);
  printProbe(terminal, result);
  terminal.warn(result.warnings);
  terminal.print('written as _can; live within 10 seconds.');
}

type SyncOptions = SyncInput & ApproveOptions & JsonOption;

async function sync(terminal: Terminal, ports: OperatorPorts, options: SyncOptions): Promise<void> {
  const plan = await planSync(ports, options);
  const { added, removed, models, listWarnings, warnings } = plan;
  listWarnings.forEach(terminal.remark);
  if (options.json) terminal.printJson({ added, removed, models });
  else printSyncPlan(terminal, plan);
  terminal.warn(warnings);
  // With --json, standard output contains only JSON.
  if (!(await approve({ ...terminal, print: terminal.remark }, plan, options))) return;
  await carryOutWrites(ports, plan);
  terminal.remark(`${models.length} models are written; live within 10 seconds.`);
}
