/** The commands of `charge`: billing rules. */
import type { Command } from 'commander';
import { explainCharge, type ExplainInput } from '../../../shared/operate/prices/explain-charge.ts';
import { planImport, type ImportInput } from '../../../shared/operate/prices/import-charges.ts';
import { listCharges } from '../../../shared/operate/prices/list-charges.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import type { CommandContext } from './command/command-context.ts';
import { printExplanation } from './print/price-sum.ts';
import { printCharges, printImportPlan } from './print/prices.ts';
import { parseCsv } from './terminal/csv.ts';
import {
  parseDecimalText,
  parseList,
  parseTime,
  parseTokens,
  type JsonOption,
} from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';
import { readTextFile } from './terminal/text-files.ts';

const examples = `
FILE is a public price list in US dollars: LiteLLM's model_prices_and_context_window.json, models.dev's api.json
(whose names are provider/model here), or a CSV with the columns model, input_cost_per_token and output_cost_per_token,
and further ones as the first list names them. Prices of the cache, tiers and maxima are taken over. Models that a rule
prices already are left alone.

Examples:
  npm run ops -- charge list
  npm run ops -- charge explain gpt-4o --input 1200 --cached 1024 --output 350
  npm run ops -- charge import prices.json --rate 7.2 --markup 20 --only-served --dry-run
  npm run ops -- charge import api.json --rate 7.2 --prefix vendor/ --models model-a,model-b
  npm run ops -- charge import prices.csv --rate 7.2 --yes`;

export function addChargeCommands(program: Command, context: CommandContext): void {
  const { terminal, onTables } = context;
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

  addExplainCommand(charge, context);

  charge
    .command('import')
    .description('make rules from a price list in US dollars')
    .argument('<file>', 'JSON or CSV')
    .requiredOption('--rate <yuan>', 'yuan for one US dollar', parseDecimalText)
    .option('--markup <percent>', 'added on top, in percent', parseDecimalText, '0')
    .option(
      '--only-served',
      'only models that a channel serves, also under the names that a mapper gives them',
    )
    .option('--prefix <text>', 'only entries whose names begin so; it is cut off', (text: string) => text)
    .option('--models <names>', 'only these, by their names without the prefix', parseList)
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

interface ExplainOptions extends JsonOption {
  input: number;
  cached: number;
  cacheWrite: number;
  cacheWrite1h: number;
  output: number;
  at?: number;
}

const tokensOf = ({
  input,
  cached,
  cacheWrite,
  cacheWrite1h,
  output,
}: ExplainOptions): ExplainInput['tokens'] => ({
  prompt_tokens: input,
  completion_tokens: output,
  prompt_tokens_details: {
    cached_tokens: cached,
    cache_write_tokens: cacheWrite,
    cache_write_1h_tokens: cacheWrite1h,
  },
});

function addExplainCommand(charge: Command, { terminal, onTables }: CommandContext): void {
  charge
    .command('explain')
    .description('what a call costs by the rules in the table: the sum, line by line')
    .argument('<model>', 'public name')
    .requiredOption('--input <tokens>', 'all input tokens, cached and written ones included', parseTokens)
    .option('--cached <tokens>', "of the input: read from the upstream's cache", parseTokens, 0)
    .option('--cache-write <tokens>', 'of the input: written to it', parseTokens, 0)
    .option('--cache-write-1h <tokens>', 'of the input: written to it for an hour', parseTokens, 0)
    .option('--output <tokens>', 'output tokens, reasoning included', parseTokens, 0)
    .option('--at <time>', 'when the call begins; default: now', parseTime)
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, model: string, options: ExplainOptions) => {
        const tokens = tokensOf(options);
        const explanation = await explainCharge(ports, { model, tokens, atMs: options.at });
        printExplanation(terminal, model, { explanation, json: options.json });
      }),
    );
}
