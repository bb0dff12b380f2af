/** The command `init`. */
import type { Command } from 'commander';
import { channelTypeNames } from '../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../shared/upstreams/types/channel-types.ts';
import { initialise } from './init.ts';
import type { InitOptions } from './init-questions.ts';
import { addOwnAttributes, ownAttributesIn } from './command/own-attributes.ts';
import { parseList, parseNumber } from './terminal/option-values.ts';
import type { CommandContext } from './command/command-context.ts';

const examples = `
Asks for what the options do not say. Where nobody is there to answer, the upstream's key is read from standard input.

Examples:
  npm run ops -- init --stack relay
  printf %s "$OPENAI_API_KEY" | npm run ops -- init --stack relay --models gpt-4o-mini --account me --amount 10 --yes
  npm run ops -- init --secret-env OPENAI_API_KEY --models gpt-4o-mini --account me --yes`;

export function addInitCommand(program: Command, { terminal, onTables }: CommandContext): void {
  const init = program
    .command('init')
    .description('set up a first upstream, account and key; prints the key and a curl line')
    .option('--type <type>', `${channelTypeNames.join(', ')} (default: ${defaultChannelType})`)
    .option('--id <id>', 'name of the channel (default: its type)')
    .option('--endpoint <url>', 'base address of the upstream (default: that of its type)');
  addOwnAttributes(init)
    .option('--models <a,b>', 'models to serve', parseList)
    .option('--secret <reference>', "a reference to the upstream's key, which is stored already")
    .option('--no-secret', 'the upstream wants no key')
    .option(
      '--secret-env <NAME>',
      "environment variable that has the upstream's key; locally the row names it",
    )
    .option('--account <name>', 'who pays')
    .option('--amount <yuan>', 'granted to the account, once (default: 0)')
    .option('--wait <seconds>', 'how long to wait until it is live', parseNumber, 30)
    .option('--yes', 'do not ask before writing')
    .addHelpText('after', examples)
    .action(
      onTables((ports, options: InitOptions, command: Command) =>
        initialise(terminal, ports, { ...options, attributes: ownAttributesIn(command) }),
      ),
    );
}
