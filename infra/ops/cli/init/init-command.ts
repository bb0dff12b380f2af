/** The command `init`. */
import type { Command } from 'commander';
import { channelTypeNames } from '../../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../../shared/upstreams/types/channel-types.ts';
import { planInit } from './plan-init.ts';
import type { InitOptions } from './init-questions.ts';
import { addOwnAttributes, ownAttributesIn } from '../command/own-attributes.ts';
import { parseDecimalText, parseList, parseModelPrice, parseNumber } from '../terminal/option-values.ts';
import type { CommandContext } from '../command/command-context.ts';

const notes = `
Asks for what the options do not say. Where nobody is there to answer, the upstream's key is read from standard input.
Calls of models without a price are refused: each model wants --price, --prices or --free. Prices are yuan per
million tokens.`;

export function addInitCommand(program: Command, { writing }: CommandContext): void {
  const init = program
    .command('init')
    .description('set up a first upstream, its prices, account and key; prints the key and a curl line')
    .option('--type <type>', `${channelTypeNames.join(', ')} (default: ${defaultChannelType})`)
    .option('--id <id>', 'name of the channel (default: its type)')
    .option('--endpoint <url>', 'base address of the upstream (default: that of its type)');
  addOwnAttributes(init)
    .option('--models <a,b>', 'models to serve', parseList)
    .option('--price <model=in/out>', 'yuan per million tokens; may be repeated', parseModelPrice)
    .option('--prices <file>', 'public price list in US dollars, as `charge import` reads it')
    .option('--rate <yuan>', 'yuan for one US dollar, with --prices', parseDecimalText)
    .option('--markup <percent>', 'added on top, with --prices', parseDecimalText)
    .option('--free <a,b>', 'models whose calls cost nothing', parseList)
    .option('--secret <reference>', "a reference to the upstream's key, which is stored already")
    .option('--no-secret', 'the upstream wants no key')
    .option(
      '--secret-env <NAME>',
      "environment variable that has the upstream's key; locally the row names it",
    )
    .option('--account <name>', 'who pays')
    .option('--amount <yuan>', 'granted to the account, once (default: 0)')
    .option('--wait <seconds>', 'how long to wait until it is live', parseNumber, 30)
    .addHelpText('after', notes);
  writing(init, (run, options: InitOptions, command: Command) =>
    planInit(run, { ...options, attributes: ownAttributesIn(command) }),
  );
}
