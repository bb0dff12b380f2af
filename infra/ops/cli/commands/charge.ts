/** The commands of `charge`: billing rules, what they cost a call, prices now and from a time on, and price lists. */
import path from 'node:path';
import { Option } from 'commander';
import type { PriceMapping } from '../../../../shared/config/setting-rows.ts';
import {
  findMapping,
  guessMapping,
  mapPriceColumns,
  mappedColumns,
  needsMapping,
} from '../../../../shared/operate/prices/price-mapping.ts';
import {
  inputParts,
  mapInputParts,
  firstPrices,
  laterPrices,
  type PartCount,
} from '../../../../shared/wire/chat-response.ts';
import {
  perMillion,
  priceDecimals,
  type Price,
  type PriceWindow,
  type WrittenRates,
} from '../../../../shared/billing/price.ts';
import { formatDecimal, formatYuan } from '../../../../shared/billing/money.ts';
import { formatHours } from '../../../../shared/billing/schedule.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { formatCount, formatInteger, formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  planAnnouncePrice,
  planNewRule,
  planReprice,
} from '../../../../shared/operate/prices/announce-price.ts';
import { planGroupPrice } from '../../../../shared/operate/prices/group-price.ts';
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
import { customerPriceFields, ruleFormFields } from '../../fields/price-fields.ts';
import { ruleSheet } from '../../fields/sheet.ts';
import { defineChange, defineView, defineWrite, type CommandGroup, type CommandRun } from '../command.ts';
import { defineSave, waitOption, type WaitOption } from '../config-writing.ts';
import {
  parseCount,
  parseDecimalText,
  parseList,
  parsePrice,
  parsePricePair,
  parseFuture,
  parseFutureText,
  type Moment,
  parseTokens,
} from '../option-values.ts';
import { formatTable, type Column, type Terminal } from '../terminal.ts';
import { readListFile } from '../text-files.ts';
import { defineApply, defineExport } from './sheets.ts';
import { parseAttributes, attributesAbout, defineOff, defineShow, type RowGroup } from './rows.ts';

const rules: RowGroup = {
  table: 'charges',
  noun: 'rule',
  keyOf(written) {
    if (/^-?\d+$/.test(written)) return Number(written);
    throw usageFailure(`invalid rule id ${written}: run \`charge list\` for ids`);
  },
  examples: { show: ['charge show 4'], off: ['charge off 4 --dry-run'] },
};

/** But prices, which are written for 1,000 tokens here and for a million in the console. */
const isExact = ({ name }: { name: string }): boolean => ['models', 'from', 'until'].includes(name);
const exactFields = ruleFormFields.filter((field) => isExact(field) || field.entries);

interface ExplainOptions {
  input: number;
  output: number;
  at?: Moment;
  account?: string;
}

/** `--cache-write <tokens>` */
const composeCountOption = (count: PartCount): string =>
  `--${count.replace(/_tokens$/, '').replaceAll('_', '-')} <tokens>`;

export const chargeCommands: CommandGroup = {
  name: 'charge',
  does: 'manage prices (billing rules)',
  notes: `
\`charge import\` reads a price list: LiteLLM's model_prices_and_context_window.json, a CSV with its columns (model,
input_cost_per_token, output_cost_per_token and others), or a vendor's CSV with --columns. It also imports cache
prices, tiers, hours and token limits, lists the prices that rules can't express, and skips models that already have a price.`,
  commands: [
    defineView('list', {
      does: 'list rules in the order the relay matches them',
      lists: true,
      examples: ['charge list', 'charge list --csv'],
      run: async ({ ports, terminal }) => {
        const { charges, shadowed, problems } = await listCharges(ports);
        if (terminal.format === 'text' && charges.length > 0) terminal.printTable(formatChargeTable(charges));
        else
          terminal.printList(charges, {
            columns,
            json: formatChargeJson,
            empty: 'No rules: all models are free unless the setting unpriced_models is "refuse".',
          });
        for (const { id, by, byId, models } of shadowed)
          terminal.remark(
            `Rule ${id}: ${byId ? 'a rule with a lower id' : `rule ${by}, with a later date,`} overrides ${models.join(', ')}`,
          );
        problems.forEach(terminal.remark);
      },
    }),
    defineView('explain', {
      does: 'calculate what a call costs, line by line',
      needs: {
        '--input <tokens>': ['all input tokens, including cached and cache-write tokens', parseTokens],
      },
      takes: {
        '<model>': 'public model name',
        ...Object.fromEntries(
          inputParts.map(({ count, words }) => [
            composeCountOption(count),
            [`input tokens ${words}`, parseTokens, 0] as const,
          ]),
        ),
        '--output <tokens>': ['output tokens, including reasoning', parseTokens, 0],
        '--at <time>': ['start time of the call (default: now)', parseFuture],
        '--account <name>': 'customer who pays (default: the standard price)',
      },
      examples: [
        'charge explain gpt-4o --input 1200 --cached 1024 --output 350',
        'charge explain gpt-4o --input 1200 --account acme',
      ],
      async run({ ports, terminal }, model: string, options: ExplainOptions) {
        const { account } = options;
        const wanted = { model, account, tokens: tokensOf(options), atMs: options.at?.(ports.clock.now()) };
        const { print, printFacts, remark } = terminal;
        const { atMs, rule, base, terms, price, above, products, cost, text, problems } = await explainCharge(
          ports,
          wanted,
        );
        problems.forEach(remark);
        const json = {
          model,
          at: isoTime(atMs),
          rule: rule ? formatChargeJson(rule) : null,
          terms: terms.map(({ source, ...each }) => ({ source, changes: describeTerms(each) })),
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
          const since = rule?.from === undefined ? '' : `, price since ${isoTime(rule.from)}`;
          print(`${model} at ${isoTime(atMs)}${since}`);
          printFacts([
            ...(terms.length > 0 ? [['rule', describePrice(base)]] : []),
            ...terms.map(({ source, ...each }) => [source, describeTerms(each)]),
            ['price', describePrice(price)],
            ...(above > 0 ? [['tier', `above ${above} input tokens`]] : []),
            ...selectProducts(products).map(formatProduct),
            ['total', `${formatMoney(cost)} (rounded half up to 9 decimals)`],
            ['ledger', text],
          ]);
        });
      },
    }),
    defineShow(rules),
    defineChange('new', {
      does: 'create a rule; prices are per 1,000 tokens, as in the table',
      takes: { '<attributes...>': attributesAbout, ...waitOption },
      examples: ['charge new type=token-billing models=gpt-4o input=0.018 output=0.072'],
      async plan(run, words: string[], options: WaitOption) {
        return defineSave(
          run,
          (await planNewRule(run.ports, parseAttributes(words, exactFields))).plan,
          options,
        );
      },
    }),
    defineChange('set', {
      does: 'change a rule; prices are per 1,000 tokens, as in the table',
      takes: {
        '<id>': 'rule id from `charge list`',
        '<attributes...>': attributesAbout,
        '--from <time>': [
          'apply the change from this time on, such as "next monday", as a new rule',
          parseFutureText,
        ],
        ...waitOption,
      },
      examples: [
        'charge set 4 input=0.018 output=0.072',
        'charge set 4 --from 2026-11-30T00:00:00+08:00 input=0.02',
      ],
      async plan(run, id: string, words: string[], { from, ...options }: WaitOption & { from?: string }) {
        const [key, attributes] = [Number(rules.keyOf(id)), parseAttributes(words, exactFields)];
        const plan =
          from === undefined
            ? await planSetRow(run.ports, { table: 'charges', key, attributes, isNew: false })
            : (await planAnnouncePrice(run.ports, { id: key, from, attributes })).plan;
        return defineSave(run, plan, options);
      },
    }),
    defineChange('price', {
      does: 'set the price of one model, per million tokens',
      takes: {
        '<model>': 'public model name',
        '<in/out>': ['yuan per million input and output tokens, such as 18/72', parsePricePair],
        '--cached <yuan>': ['yuan per million cached input tokens', parsePrice],
        '--from <time>': ['start time, such as 2d or "next monday" (default: now)', parseFutureText],
        '--announced <choice>':
          'what to do with a price announced for later: keep, delete, or a new start time',
        ...waitOption,
      },
      examples: [
        'charge price gpt-4o 18/72',
        'charge price gpt-4o 18/72 --announced delete',
        'charge price gpt-4o 18/72 --cached 1.8 --from 2026-11-30T00:00:00+08:00',
      ],
      async plan(run, model: string, pair: TypedPrice, options: PriceOptions) {
        const { from, cached, announced } = options;
        const attributes = { ...pair, ...(cached !== undefined && { cached_input: cached }) };
        return defineSave(run, await planReprice(run.ports, { model, attributes, from, announced }), options);
      },
    }),
    defineChange('group', {
      does: 'set a price for a price group, now or from a date; prices are per 1,000 tokens',
      takes: {
        '<name>': 'a group of the setting price_groups; a new name creates it',
        '<attributes...>': attributesAbout,
        '--off': 'delete the price of these models that starts at `from` (default: now)',
        ...waitOption,
      },
      examples: [
        'charge group resellers models=gpt-4o factor=0.9 from="next monday"',
        'charge group resellers models=gpt-4o from=2026-11-30T00:00:00+08:00 --off',
      ],
      async plan(run, group: string, words: string[], { off, ...options }: WaitOption & { off?: boolean }) {
        const attributes = parseAttributes(words, customerPriceFields.filter(isExact));
        return defineSave(run, await planGroupPrice(run.ports, { group, attributes, off }), options);
      },
    }),
    defineOff(rules),
    defineChange('import', {
      does: 'create rules from a price list of a vendor or of LiteLLM',
      takes: {
        '<file>': 'price list, JSON or CSV',
        '--rate <yuan>': ['yuan per US dollar; not needed for a list in yuan', parseDecimalText],
        '--markup <percent>': ['markup in percent', parseDecimalText, '0'],
        '--only-served': 'only models that a channel serves, including mapped names',
        '--prefix <text>': 'only entries with this prefix; the prefix is removed',
        '--models <names>': ['only these models, without the prefix', parseList],
        '--columns <names>':
          'columns of another list, such as model=型号,input=输入,output=输出; saved for this vendor',
        '--per <tokens>': ['with --columns: number of tokens that a price covers', parseCount, 1_000_000],
        '--currency <code>': new Option(
          '--currency <code>',
          'with --columns: currency of the list (default: cny if it has yuan signs, else usd)',
        ).choices(['cny', 'usd']),
        '--vendor <name>': 'save the columns under this name (default: the name of the file)',
        '--free <names>': ['models that may be free; missing prices count as 0', parseList],
      },
      examples: [
        'charge import prices.json --rate 7.2 --markup 20 --only-served --dry-run',
        'charge import api.json --rate 7.2 --prefix vendor/ --models model-a,model-b',
        'charge import prices.csv --rate 7.2 --yes',
        'charge import vendor.csv --columns model=型号,input=输入,output=输出',
      ],
      async plan(run, file: string, { columns, per, currency, vendor, ...options }: ImportOptions) {
        const { ports } = run;
        const read = await readMappedList(run, file, { columns, per, currency, vendor });
        const { mapping } = read;
        if (options.rate !== undefined && mapping?.currency === 'cny')
          throw usageFailure('--rate: leave it out for a list in yuan');
        if (options.rate === undefined && mapping?.currency !== 'cny')
          throw usageFailure(
            mapping && currency === undefined
              ? 'is the list in yuan? Then --columns ... --currency cny; else --rate, such as 7.2'
              : '--rate: use yuan per US dollar, for example 7.2',
          );
        const plan = await planImport(ports, { ...options, ...read });
        const { charges, missing } = plan;
        return defineWrite({
          plan,
          preview({ print, printTable, remark }) {
            if (missing.length > 0) remark(`Not in the price list: ${missing.join(', ')}`);
            if (charges.length > 0) printTable(formatChargeTable(charges));
            if (charges.length === 0) print('Nothing to import.');
          },
          carryOut: () => carryOutWrites(ports, plan),
          print({ print }, written) {
            const rulesMade = written.filter(({ table }) => table === 'charges').length;
            print(`Created ${formatCount(rulesMade, 'rule')}; live within 10 s.`);
          },
          facts: () => ({ charges, missing }),
        });
      },
    }),
    defineExport('charge', ruleSheet),
    defineApply('charge', ruleSheet),
  ],
};

type MappingOptions = { columns?: string; per: number; currency?: PriceMapping['currency']; vendor?: string };

type ImportOptions = Omit<ImportInput, 'list' | 'mapping'> & MappingOptions;

/**
 * Reads a list with LiteLLM's columns as it is. Any other list needs a mapping: the given one, else the remembered one, else the answers
 * that a terminal's user gives.
 */
async function readMappedList(
  { ports, terminal }: CommandRun,
  file: string,
  { columns, per, currency, vendor = path.parse(file).name }: MappingOptions,
): Promise<Pick<ImportInput, 'list' | 'mapping'>> {
  const list = await readListFile(file);
  if (typeof list === 'string' || (columns === undefined && !needsMapping(list))) return { list };
  if (![1, 1000, 1_000_000].includes(per)) throw usageFailure('--per: use 1, 1000 or 1000000');
  const remembered = columns === undefined ? await findMapping(ports, list, vendor) : undefined;
  const mapping = remembered ?? {
    vendor,
    columns: parseColumns(columns ?? (await askColumns(terminal, list[0] ?? []))),
    per: per as PriceMapping['per'],
    currency: currency ?? guessMapping(list).currency,
  };
  const pairs = Object.entries(mapping.columns).map((pair) => pair.join('='));
  terminal.remark(
    `Columns of ${mapping.vendor}: ${pairs.join(',')}, ${mapping.currency} per ${formatInteger(mapping.per)} tokens`,
  );
  return { list: mapPriceColumns(list, mapping), mapping };
}

function parseColumns(columns: string): Record<string, string> {
  const pairs = columns.split(',').map((pair) => pair.split('=').map((part) => part.trim()));
  const unknown = pairs.find(([name = '']) => !mappedColumns.includes(name));
  if (unknown) throw usageFailure(`--columns: unknown name ${unknown[0]}: use ${mappedColumns.join(', ')}`);
  return Object.fromEntries(pairs) as Record<string, string>;
}

async function askColumns(terminal: Terminal, head: readonly string[]): Promise<string> {
  if (!terminal.isAttended)
    throw usageFailure(
      `unknown columns: ${head.join(', ')}. Re-run with --columns model=...,input=...,output=...`,
    );
  const answers: string[] = [];
  for (const name of mappedColumns) {
    const answer = await terminal.ask(`Which column contains ${name} (${head.join(', ')}; Enter: none)?`);
    if (answer !== '') answers.push(`${name}=${answer}`);
  }
  return answers.join(',');
}

type PriceOptions = WaitOption & { from?: string; cached?: number; announced?: string };

const tokensOf = ({ input, output, ...options }: ExplainOptions): ExplainInput['tokens'] => ({
  prompt_tokens: input,
  completion_tokens: output,
  prompt_tokens_details: mapInputParts('count', ({ count }) =>
    Number((options as Record<string, unknown>)[new Option(composeCountOption(count)).attributeName()]),
  ),
});

const modelsShown = 6;

type Rule = NewCharge & { anonymous?: unknown };

/** For people in yuan per million tokens. */
const columns: Column<Rule>[] = [
  ['id', 'ID', ({ id }) => id],
  ['type', 'TYPE', ({ type }) => type],
  ['from', 'FROM', ({ from }) => (from === undefined ? undefined : isoTime(from))],
  ['', 'INPUT/M', (charge) => (charge.type === 'token-billing' ? formatInputPrices(charge) : '-')],
  ['', 'OUTPUT/M', (charge) => formatOutputPrices(charge)],
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
  ['windows', '', (charge) => charge.windows],
];

const describeTerms = ({ factor, price }: { factor?: number | undefined; price: Price }): string =>
  factor === undefined ? `prices of its own: ${describePrice(price)}` : `x ${factor}`;

/** Dates stand in it only if a rule has one. */
export const formatChargeTable = (charges: NewCharge[]): string[][] =>
  formatTable(
    charges.some(({ from }) => from !== undefined) ? columns : columns.filter(([name]) => name !== 'from'),
    charges,
  );

function formatOutputPrices({ type, output, tiers = [] }: NewCharge): string {
  if (type === 'non-billing') return '-';
  if (type === 'times-billing') return `${output} per call`;
  return [perMillion(output), ...tiers.map((tier) => `above ${tier.above}: ${perMillion(tier.output)}`)].join(
    ', ',
  );
}

/** The price of input, with the prices of cached and written input that the rule has. */
function formatInputPrices({ tiers = [], service_tiers = {}, windows = [], ...base }: NewCharge): string {
  const higher = tiers.map((tier) => `, above ${tier.above}: ${formatRates(tier)}`);
  const served = Object.entries(service_tiers).map(([tier, factor]) => `, ${tier}: x ${factor}`);
  const byHour = windows.map((each) => `, ${each.name} ${formatHours(each)}: ${formatWindow(each)}`);
  return [formatRates(base), ...higher, ...served, ...byHour].join('');
}

const formatWindow = ({ factor, input = 0, output = 0, ...rates }: PriceWindow): string =>
  factor === undefined ? `${formatRates({ input, output, ...rates })}/${perMillion(output)}` : `x ${factor}`;

function formatRates({ input, ...rates }: WrittenRates): string {
  const parts = inputParts.flatMap(({ price: name, label }) => {
    const price = rates[name];
    return price === undefined ? [] : [`${label} ${perMillion(price)}`];
  });
  return parts.length > 0 ? `${perMillion(input)} (${parts.join(', ')})` : perMillion(input);
}

/** As in the table: a time is ISO 8601. */
const formatChargeJson = ({ from, ...charge }: ChargeList['charges'][number]) => ({
  ...charge,
  ...(from !== undefined && { from: isoTime(from) }),
});
