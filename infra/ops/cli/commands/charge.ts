/** The commands of `charge`: billing rules. */
import type { Command } from 'commander';
import {
  explainCharge,
  type ExplainInput,
  listCharges,
} from '../../../../shared/operate/prices/list-charges.ts';
import { planImport, type ImportInput } from '../../../../shared/operate/prices/import-charges.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { type CommandContext, writes, listing, countProgress } from '../command.ts';
import {
  printExplanation,
  importFacts,
  printCharges,
  printImportPlan,
  configWriting,
  waiting,
  type WaitOption,
} from '../print-config.ts';
import {
  parseDecimalText,
  parseList,
  parseTime,
  parseTokens,
  parsePrice,
  parsePricePair,
  type PricePair,
  attributesMean,
  parseAttributes,
} from '../option-values.ts';
import { readListFile } from '../text-files.ts';
import {
  planAnnouncePrice,
  planNewRule,
  planReprice,
} from '../../../../shared/operate/prices/announce-price.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { addOff, addShow, type RowGroup } from './rows.ts';

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

// Commands that change one billing rule: now, or from a time on.

const charges: RowGroup = {
  table: 'charges',
  noun: 'a rule',
  keyOf(written) {
    if (/^-?\d+$/.test(written)) return Number(written);
    throw usageFailure(`${written} is no id of a rule: see \`charge list\``);
  },
};

function addChargeEdits(charge: Command, context: CommandContext): void {
  addShow(charge, context, charges);
  context.writing(
    waiting(
      charge
        .command('set')
        .description('set attributes of a rule, or make one, as the table has them: prices per 1,000 tokens')
        .argument('<id>', 'as `charge list` shows it; new: the next free one')
        .argument('<attributes...>', attributesMean)
        .option('--from <time>', 'let a rule of its own begin then, and leave this one until then'),
    ),
    async (run, ...[written, attributes, options]: [string, string[], WaitOption & { from?: string }]) => {
      const { ports } = run;
      const { from } = options;
      const values = parseAttributes(attributes);
      if (from !== undefined && written !== 'new') {
        const id = Number(charges.keyOf(written));
        const { plan } = await planAnnouncePrice(ports, { id, from, attributes: values });
        return configWriting(run, plan, options);
      }
      const all = { ...values, ...(from !== undefined && { from }) };
      if (written === 'new') return configWriting(run, (await planNewRule(ports, all)).plan, options);
      const key = charges.keyOf(written);
      return configWriting(run, await planSetRow(ports, { table: 'charges', key, attributes: all }), options);
    },
  );
  context.writing(
    waiting(
      charge
        .command('price')
        .description('give one model another price; of a rule with other models it gets one of its own')
        .argument('<model>', 'public name')
        .argument('<in/out>', 'yuan per million tokens of input and output, such as 18/72', parsePricePair)
        .option('--cached <yuan>', 'per million tokens of input read from the cache', parsePrice)
        .option('--from <time>', 'when it begins (default: at once)'),
    ),
    async (
      run,
      ...[model, pair, options]: [string, PricePair, WaitOption & { from?: string; cached?: number }]
    ) => {
      const { from, cached } = options;
      const attributes = { ...pair, ...(cached !== undefined && { cached_input: cached }) };
      return configWriting(run, await planReprice(run.ports, { model, attributes, from }), options);
    },
  );
  addOff(charge, context, charges);
}
