import type { Command } from 'commander';
import { addChannel } from './channel-add.ts';
import { listChannels } from './channel-list.ts';
import { testChannel } from './channel-test.ts';
import { parseList, parseMapper, parseNumber } from './option-values.ts';
import { openSession } from './session.ts';
import { surroundings } from './surroundings.ts';

const examples = `
A secret is given as a reference, never as the value: ssm:/relay/<stack>/<name>, secretsmanager:<stack>/<name>,
or, on a local stack only, env:NAME. Store the value first:
  aws ssm put-parameter --type SecureString --name /relay/relay/openai --value "$OPENAI_API_KEY"

Examples:
  npm run ops -- channel add --id openai --endpoint https://api.openai.com/v1 --models gpt-4o,gpt-4o-mini --secret env:OPENAI_API_KEY
  npm run ops -- channel add --stack relay --id openai --endpoint https://api.openai.com/v1 --models gpt-4o --secret ssm:/relay/relay/openai
  npm run ops -- channel add --id ds --endpoint https://api.deepseek.com/v1 --models smart --mapper smart=deepseek-chat --priority 10
  npm run ops -- channel list
  npm run ops -- channel test openai --model gpt-4o-mini`;

export function addChannelCommands(program: Command): void {
  const channel = program
    .command('channel')
    .description('upstreams that the relay calls')
    .addHelpText('after', examples);

  channel
    .command('add')
    .description('add a channel, switched on; live within 10 seconds')
    .requiredOption('--id <id>', 'its name in this table and in logs')
    .requiredOption('--endpoint <url>', 'base address, mostly ending in /v1')
    .requiredOption('--models <a,b>', 'model names that clients use', parseList)
    .option('--name <text>', 'for people')
    .option('--secret <reference>', 'where the key of the upstream is stored (default: none is sent)')
    .option('--priority <n>', 'higher is tried first (default: 0)', parseNumber)
    .option('--weight <n>', 'share among channels of the same priority (default: 1)', parseNumber)
    .option('--mapper <pub=up,...>', "public model name = the upstream's name for it", parseMapper)
    .option('--disabled', 'switched off (state false)')
    .option('--replace', 'write over the row with this id, all its attributes')
    .option('--yes', 'do not ask before a row is replaced')
    .action(async (_options, command: Command) => addChannel(await openSession(command), command.opts()));

  channel
    .command('list')
    .description('list channels in the order in which they are tried')
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) => listChannels(await openSession(command)));

  channel
    .command('test')
    .description('send one tiny real chat request, with the settings of the channel')
    .argument('<id>', 'id of the channel; it may be switched off')
    .option('--model <name>', 'public model name (default: the first of the channel)')
    .option('--secret-env <NAME>', 'take the key from this environment variable instead of the reference')
    .action(async (id: string, _options, command: Command) =>
      testChannel(await openSession(command), id, command.opts(), surroundings.environment),
    );
}
