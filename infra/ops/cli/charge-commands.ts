/** The commands of `charge`: billing rules. */
import type { Command } from 'commander';
import { explainCharge, type ExplainInput } from '../../../shared/operate/prices/explain-charge.ts';
import { planImport, type ImportInput } from '../../../shared/operate/prices/import-charges.ts';
import { listCharges } from '../../../shared/operate/prices/list-charges.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import type { CommandContext } from './command/command-context.ts';
import { writes } from './command/writing.ts';
import { listing } from './command/common-options.ts';
import { addChargeEdits } from './rows/charge-edit-commands.ts';
import { printExplanation } from './print/price-sum.ts';
import { importFacts, printCharges, printImportPlan } from './print/prices.ts';
import { parseDecimalText, parseList, parseTime, parseTokens } from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';
import { readListFile } from './terminal/text-files.ts';

const notes = `
FILE is a public price list in US dollars: LiteLLM's model_prices_and_context_window.json, models.dev's api.json
(whose names are provider/model here), or a CSV with the columns model, input_cost_per_token and output_cost_per_token,
and further ones as the first list names them. Prices of the cache, tiers and maxima are taken over. Models that a rule
prices already are left alone.`;

export function addChargeCommands(program: Command, context: CommandContext): void {
  const { onTables, writing } = context;
  const charge = program
    .command('charge')
    .description('billing rules: what models cost')
    .addHelpText('after', notes);

  listing(
    charge.command('list').description('list the rules in the order in which they are looked at'),
  ).action(onTables(async ({ ports, terminal }) => printCharges(terminal, await listCharges(ports))));

  addExplainCommand(charge, context);
  addChargeEdits(charge, context);

  writing(
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
      .option('--free <names>', 'models that may be free, where the list has no price above 0', parseList),
    async ({ ports, terminal }, file: string, options: Omit<ImportInput, 'list'>) => {
      const plan = await planImport(ports, { list: await readListFile(file), ...options });
      return writes({
        plan,
        preview: (terminal) => printImportPlan(terminal, plan),
        carryOut: () => carryOutWrites(ports, plan, countProgress(terminal, 'rules written')),
        print: ({ print }, written) => print(`${written.length} rules are written; live within 10 seconds.`),
        facts: () => importFacts(plan),
      });
    },
  );
}

interface ExplainOptions {
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

function addExplainCommand(charge: Command, { onTables }: CommandContext): void {
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
    .action(
      onTables(async ({ ports, terminal }, model: string, options: ExplainOptions) => {
        const tokens = tokensOf(options);
        const explanation = await explainCharge(ports, { model, tokens, atMs: options.at });
        printExplanation(terminal, model, explanation);
      }),
    );
}
