/** The commands of `charge`: billing rules, what they cost a call, prices now and from a time on, and price lists. */
import { Option } from 'commander';
import {
  inputParts,
  mapInputParts,
  firstPrices,
  laterPrices,
  type PartCount,
} from '../../../../shared/wire/chat-response.ts';
import {
  formatDecimal,
  formatYuan,
  perMillion,
  priceDecimals,
  type WrittenRates,
} from '../../../../shared/billing/price.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  planAnnouncePrice,
  planNewRule,
  planReprice,
} from '../../../../shared/operate/prices/announce-price.ts';
import {
  explainCharge,
  listCharges,
  type ExplainInput,
  type ChargeList,
} from '../../../../shared/operate/prices/list-charges.ts';
import {
  planImport,
  type ImportInput,
  type NewCharge,
} from '../../../../shared/operate/prices/import-charges.ts';
import type { TypedPrice } from '../../../../shared/operate/prices/first-prices.ts';
import {
  describePrice,
  formatProduct,
  selectProducts,
} from '../../../../shared/operate/requests/find-request.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { ruleFields } from '../../fields/rule-fields.ts';
import { ruleSheet } from '../../fields/sheet.ts';
import { changes, shows, writes, type CommandGroup } from '../command.ts';
import { configWriting, waiting, type WaitOption } from '../config-writing.ts';
import {
  parseDecimalText,
  parseList,
  parsePrice,
  parsePricePair,
  parseFuture,
  parseFutureText,
  type Moment,
  parseTokens,
} from '../option-values.ts';
import { textTable, type Column } from '../terminal.ts';
import { readListFile } from '../text-files.ts';
import { sheetCommands } from './sheets.ts';
import { attributesIn, attributesMean, offCommand, showCommand, type RowGroup } from './rows.ts';

const rules: RowGroup = {
  table: 'charges',
  noun: 'a rule',
  keyOf(written) {
    if (/^-?\d+$/.test(written)) return Number(written);
    throw usageFailure(`${written} is no id of a rule: see \`charge list\``);
  },
  examples: { show: ['charge show 4'], off: ['charge off 4 --dry-run'] },
};

/** But prices, which are written for 1,000 tokens here and for a million in the console. */
const asTyped = ruleFields.filter(({ name }) => name === 'models' || name === 'from');

interface ExplainOptions {
  input: number;
  output: number;
  at?: Moment;
}

/** `--cache-write <tokens>` */
const partOption = (count: PartCount): string =>
  `--${count.replace(/_tokens$/, '').replaceAll('_', '-')} <tokens>`;

export const chargeCommands: CommandGroup = {
  name: 'charge',
  does: 'billing rules: what models cost',
  notes: `
FILE is a public price list in US dollars: LiteLLM's model_prices_and_context_window.json, or a CSV with the columns
model, input_cost_per_token and output_cost_per_token, and further ones as that list names them. Prices of the cache, tiers and maxima are taken over. Models that a rule
prices already are left alone.`,
  commands: [
    shows('list', {
      does: 'list the rules in the order in which they are looked at',
      lists: true,
      examples: ['charge list', 'charge list --csv'],
      run: async ({ ports, terminal }) => {
        const { charges, shadowed, problems } = await listCharges(ports);
        if (terminal.format === 'text' && charges.length > 0) terminal.printTable(chargeTable(charges));
        else
          terminal.printList(charges, {
            columns,
            json: withTime,
            empty: 'no rules: every model is free, unless the setting unpriced_models refuses it',
          });
        for (const { id, by, byId, models } of shadowed)
          terminal.remark(
            `${id}: ${byId ? 'a rule with a lower id' : `rule ${by}, with a later date,`} prices ${models.join(', ')}`,
          );
        problems.forEach(terminal.remark);
      },
    }),
    shows('explain', {
      does: 'what a call costs by the rules in the table: the sum, line by line',
      needs: { '--input <tokens>': ['all input tokens, cached and written ones included', parseTokens] },
      takes: {
        '<model>': 'public name',
        ...Object.fromEntries(
          inputParts.map(({ count, words }) => [
            partOption(count),
            [`of the input: ${words}`, parseTokens, 0] as const,
          ]),
        ),
        '--output <tokens>': ['output tokens, reasoning included', parseTokens, 0],
        '--at <time>': ['when the call begins (default: now)', parseFuture],
      },
      examples: ['charge explain gpt-4o --input 1200 --cached 1024 --output 350'],
      async run({ ports, terminal }, model: string, options: ExplainOptions) {
        const wanted = { model, tokens: tokensOf(options), atMs: options.at?.(ports.clock.now()) };
        const { print, printFacts, remark } = terminal;
        const { atMs, rule, price, above, products, cost, text, problems } = await explainCharge(
          ports,
          wanted,
        );
        problems.forEach(remark);
        const json = {
          model,
          at: isoTime(atMs),
          rule: rule ? withTime(rule) : null,
          above,
          sum: products.map(([kind, tokens, rate]) => ({
            kind,
            tokens,
            price: formatDecimal(rate, priceDecimals),
          })),
          total: formatYuan(cost),
          price: text,
        };
        terminal.printAs(json, () => {
          const since = rule?.from === undefined ? '' : `, in force since ${isoTime(rule.from)}`;
          print(`${model} at ${isoTime(atMs)}${since}`);
          printFacts([
            ['price', describePrice(price)],
            ...(above > 0 ? [['tier', `for more than ${above} input tokens`]] : []),
            ...selectProducts(products).map(formatProduct),
            ['total', `${formatYuan(cost)} yuan, rounded once, half up, to 9 decimals`],
            ['ledger', text],
          ]);
        });
      },
    }),
    showCommand(rules),
    changes('new', {
      does: 'make a rule, as the table has it: prices per 1,000 tokens',
      takes: { '<attributes...>': attributesMean, ...waiting },
      examples: ['charge new type=token-billing models=gpt-4o input=0.018 output=0.072'],
      async plan(run, words: string[], options: WaitOption) {
        return configWriting(run, (await planNewRule(run.ports, attributesIn(words, asTyped))).plan, options);
      },
    }),
    changes('set', {
      does: 'set attributes of a rule, as the table has them: prices per 1,000 tokens',
      takes: {
        '<id>': 'as `charge list` shows it',
        '<attributes...>': attributesMean,
        '--from <time>': [
          'let a rule of its own begin then, such as "next monday", and leave this one until then',
          parseFutureText,
        ],
        ...waiting,
      },
      examples: [
        'charge set 4 input=0.018 output=0.072',
        'charge set 4 --from 2026-11-30T00:00:00+08:00 input=0.02',
      ],
      async plan(run, id: string, words: string[], { from, ...options }: WaitOption & { from?: string }) {
        const [key, attributes] = [Number(rules.keyOf(id)), attributesIn(words, asTyped)];
        const plan =
          from === undefined
            ? await planSetRow(run.ports, { table: 'charges', key, attributes, isNew: false })
            : (await planAnnouncePrice(run.ports, { id: key, from, attributes })).plan;
        return configWriting(run, plan, options);
      },
    }),
    changes('price', {
      does: 'give one model another price; of a rule with other models it gets one of its own',
      takes: {
        '<model>': 'public name',
        '<in/out>': ['yuan per million tokens of input and output, such as 18/72', parsePricePair],
        '--cached <yuan>': ['per million tokens of input read from the cache', parsePrice],
        '--from <time>': ['when it begins, such as 2d or "next monday" (default: at once)', parseFutureText],
        '--announced <choice>':
          'what becomes of a price announced for later: keep, delete, or a time to move it to',
        ...waiting,
      },
      examples: [
        'charge price gpt-4o 18/72',
        'charge price gpt-4o 18/72 --announced delete',
        'charge price gpt-4o 18/72 --cached 1.8 --from 2026-11-30T00:00:00+08:00',
      ],
      async plan(run, model: string, pair: TypedPrice, options: PriceOptions) {
        const { from, cached, announced } = options;
        const attributes = { ...pair, ...(cached !== undefined && { cached_input: cached }) };
        return configWriting(
          run,
          await planReprice(run.ports, { model, attributes, from, announced }),
          options,
        );
      },
    }),
    offCommand(rules),
    changes('import', {
      does: 'make rules from a price list in US dollars',
      needs: { '--rate <yuan>': ['yuan for one US dollar', parseDecimalText] },
      takes: {
        '<file>': 'JSON or CSV',
        '--markup <percent>': ['added on top, in percent', parseDecimalText, '0'],
        '--only-served': 'only models that a channel serves, also under the names that a mapper gives them',
        '--prefix <text>': 'only entries whose names begin so; it is cut off',
        '--models <names>': ['only these, by their names without the prefix', parseList],
        '--free <names>': ['models that may be free, where the list has no price above 0', parseList],
      },
      examples: [
        'charge import prices.json --rate 7.2 --markup 20 --only-served --dry-run',
        'charge import api.json --rate 7.2 --prefix vendor/ --models model-a,model-b',
        'charge import prices.csv --rate 7.2 --yes',
      ],
      async plan({ ports }, file: string, options: Omit<ImportInput, 'list'>) {
        const plan = await planImport(ports, { list: await readListFile(file), ...options });
        const { charges, missing, suspicious } = plan;
        return writes({
          plan,
          preview({ print, printTable, remark, warn }) {
            if (missing.length > 0) remark(`not in the list: ${missing.join(', ')}`);
            if (charges.length > 0) printTable(chargeTable(charges));
            if (suspicious !== undefined)
              warn([`more than a dollar per 1,000 tokens, is the list per token? ${suspicious} and others`]);
            if (charges.length === 0) print('nothing to write');
          },
          carryOut: () => carryOutWrites(ports, plan),
          print: ({ print }, written) =>
            print(`${formatCount(written.length, 'rule is', 'rules are')} written; live within 10 seconds.`),
          facts: () => ({ charges, missing }),
        });
      },
    }),
    ...sheetCommands('charge', ruleSheet),
  ],
};

type PriceOptions = WaitOption & { from?: string; cached?: number; announced?: string };

const tokensOf = ({ input, output, ...options }: ExplainOptions): ExplainInput['tokens'] => ({
  prompt_tokens: input,
  completion_tokens: output,
  prompt_tokens_details: mapInputParts('count', ({ count }) =>
    Number((options as Record<string, unknown>)[new Option(partOption(count)).attributeName()]),
  ),
});

const modelsShown = 6;

type Rule = NewCharge & { anonymous?: unknown };

/** For people in yuan per million tokens. */
const columns: Column<Rule>[] = [
  ['id', 'ID', ({ id }) => id],
  ['type', 'TYPE', ({ type }) => type],
  ['from', 'FROM', ({ from }) => (from === undefined ? undefined : isoTime(from))],
  ['', 'INPUT/M', (charge) => (charge.type === 'token-billing' ? inputPrices(charge) : '-')],
  ['', 'OUTPUT/M', (charge) => outputPrices(charge)],
  [
    'models',
    'MODELS',
    ({ models }) => models,
    ({ models }) =>
      models.slice(0, modelsShown).join(' ') +
      (models.length > modelsShown ? ` and ${models.length - modelsShown} more` : ''),
  ],
  ['input', '', ({ input }) => input],
  ['output', '', ({ output }) => output],
  ...firstPrices.map((name): Column<Rule> => [name, '', (charge) => charge[name]]),
  ['tiers', '', ({ tiers }) => tiers],
  ['max_output_tokens', '', (charge) => charge.max_output_tokens],
  ['anonymous', '', ({ anonymous }) => anonymous],
  ...laterPrices.map((name): Column<Rule> => [name, '', (charge) => charge[name]]),
  ['service_tiers', '', (charge) => charge.service_tiers],
];

/** Dates stand in it only if a rule has one. */
export const chargeTable = (charges: NewCharge[]): string[][] =>
  textTable(
    charges.some(({ from }) => from !== undefined) ? columns : columns.filter(([name]) => name !== 'from'),
    charges,
  );

function outputPrices({ type, output, tiers = [] }: NewCharge): string {
  if (type === 'non-billing') return '-';
  if (type === 'times-billing') return `${output} per call`;
  return [perMillion(output), ...tiers.map((tier) => `above ${tier.above}: ${perMillion(tier.output)}`)].join(
    ', ',
  );
}

/** The price of input, with the prices of cached and written input that the rule has. */
function inputPrices({ tiers = [], service_tiers = {}, ...base }: NewCharge): string {
  const higher = tiers.map((tier) => `, above ${tier.above}: ${rateWords(tier)}`);
  const served = Object.entries(service_tiers).map(([tier, factor]) => `, ${tier}: x ${factor}`);
  return [rateWords(base), ...higher, ...served].join('');
}

function rateWords({ input, ...rates }: WrittenRates): string {
  const parts = inputParts.flatMap(({ price: name, label }) => {
    const price = rates[name];
    return price === undefined ? [] : [`${label} ${perMillion(price)}`];
  });
  return parts.length > 0 ? `${perMillion(input)} (${parts.join(', ')})` : perMillion(input);
}

/** As in the table: a time is ISO 8601. */
const withTime = ({ from, ...charge }: ChargeList['charges'][number]) => ({
  ...charge,
  ...(from !== undefined && { from: isoTime(from) }),
});
