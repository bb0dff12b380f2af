/** The commands of `charge`: billing rules. */
import type { Command } from 'commander';
import { planImport, type ImportInput } from '../../../shared/operate/prices/import-charges.ts';
import { listCharges } from '../../../shared/operate/prices/list-charges.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import type { CommandContext } from './command-context.ts';
import { printCharges, printImportPlan } from './print/prices.ts';
import { parseCsv } from './terminal/csv.ts';
import { parseDecimalText, type JsonOption } from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';
import { readTextFile } from './terminal/text-files.ts';

const examples = `
FILE is LiteLLM's price list (model_prices_and_context_window.json) or a CSV with the columns model,
input_cost_per_token and output_cost_per_token, in US dollars. Models that a rule prices already are left alone.

Examples:
  npm run ops -- charge list
  npm run ops -- charge import prices.json --rate 7.2 --markup 20 --only-served --dry-run
  npm run ops -- charge import prices.csv --rate 7.2 --yes`;

export function addChargeCommands(program: Command, { terminal, onTables }: CommandContext): void {
  const charge = program
    .command('charge')
    .description('billing rules: what models cost')
    .addHelpText('after', examples);

  charge
    .command('list')
    .description('list the rules in the order in which they are looked at')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, options: JsonOption) =>
        printCharges(terminal, await listCharges(ports), options),
      ),
    );

  charge
    .command('import')
    .description('make rules from a price list in US dollars per token')
    .argument('<file>', 'JSON or CSV')
    .requiredOption('--rate <yuan>', 'yuan for one US dollar', parseDecimalText)
    .option('--markup <percent>', 'added on top, in percent', parseDecimalText, '0')
    .option(
      '--only-served',
      'only models that a channel serves, also under the names that a mapper gives them',
    )
    .option('--dry-run', 'show the rules and write nothing')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, file: string, options: Omit<ImportInput, 'list'> & ApproveOptions) => {
        const text = await readTextFile(file);
        const list = text.trimStart().startsWith('{') ? text : parseCsv(text);
        const plan = await planImport(ports, { list, ...options });
        printImportPlan(terminal, plan);
        if (!(await approve(terminal, plan, options))) return;
        const written = await carryOutWrites(ports, plan, countProgress(terminal, 'rules written'));
        terminal.print(`${written.length} rules are written; live within 10 seconds.`);
      }),
    );
}
