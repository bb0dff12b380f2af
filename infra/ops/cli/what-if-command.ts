/** The command `what-if`: what an edit would have made of the calls of the last week. Writes nothing. */
import type { Command } from 'commander';
import { whatIfFile } from '../../../shared/operate/what-if/what-if.ts';
import type { CommandContext } from './command/command-context.ts';
import { listing } from './command/common-options.ts';
import { printWhatIf } from './print/what-if.ts';
import { readTextFile } from './terminal/text-files.ts';

const notes = `
Computed from the sums of seven days, today among them; no call is looked at. "exact" is to the last unit. Where sums do not
say enough (tiers, prices of the cache that were free, prices per call) the middle stands there with how far the truth may
be from it. Calls are taken to come as they came: a price changes nothing about who calls, and calls of a channel that is
gone go to any other that serves the model. An edit with rules that begin later is compared at the time of the last.`;

export function addWhatIfCommand(program: Command, { onTables }: CommandContext): void {
  listing(
    program
      .command('what-if')
      .description(
        'say what an edit of prices or channels would have made of the calls of the last seven days',
      )
      .argument('<file>', 'the rows of this JSON file, put over those of the tables, as `config apply` does')
      .option('--prune', 'without the rows that the file does not have, of the tables that it names'),
  )
    .addHelpText('after', notes)
    .action(
      onTables(async ({ ports, terminal }, path: string, options: { prune?: boolean }) => {
        const file = { name: path, text: await readTextFile(path) };
        printWhatIf(terminal, await whatIfFile(ports, file, options));
      }),
    );
}
