/** Creates billing rules from a price list, for models without a rule. Never changes an existing rule. */
import { listPricedModels, type WrittenPrice, type WrittenRates } from '../../billing/price.ts';
import { divideHalfUp, formatDecimal, parseDecimal } from '../../billing/money.ts';
import { ChargeRow } from '../../config/rows/charge-row.ts';
import { plainValue, readRow } from '../../config/rows/read-row.ts';
import { joinNames } from '../../config/rows/read-table.ts';
import { factsMax, readSetting, type PriceMapping } from '../../config/setting-rows.ts';
import { asRecord, canonicalJson, listTexts } from '../../wire/json.ts';
import { listUsableChannels } from '../channels/list-channels.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { formatCount, Failure, requireValid, usageFailure } from '../plan.ts';
import { readCharges, setAttributes, writeSetting } from '../rows.ts';
import { chooseNextId } from './list-charges.ts';
import {
  dollarDecimals,
  isModelName,
  rateNames,
  readPriceList,
  type ListedPrice,
  type ListedRates,
  type PriceList,
  type PriceSource,
} from './price-list.ts';

export interface ImportInput {
  list: PriceSource;
  /** Yuan per US dollar, a decimal as text. Missing for a list in yuan. */
  rate?: string | undefined;
  markup: string;
  /** Import only models that a channel serves, under their public names. */
  onlyServed?: boolean;
  /** Import only entries whose names begin with this, which is cut off. */
  prefix?: string;
  /** Import only these models, by their names without the prefix. */
  models?: string[];
  /** Models whose missing prices are 0. Others are left out if the list lacks a price, or has none above 0. */
  free?: string[];
  /** Saved for the vendor's next list. */
  mapping?: (PriceMapping & { vendor: string }) | undefined;
}

/**
 * 1 dollar per 1,000 tokens, as dollars per token. Lists with higher prices are usually per 1,000 or per
 * million tokens.
 */
const suspiciousDollars = 10n ** BigInt(dollarDecimals - 3);

/**
 * `charges`: the rules to write, with ids after the highest existing one. `missing`: served models that the list does not price.
 */
export async function planImport({ clock, tables, target }: OperatorPorts, input: ImportInput) {
  const factor = factorOf(input);
  const { prices, skipped } = selectPrices(readPriceList(input.list), input);
  const [rows, known, lists] = await Promise.all([
    tables.scan('charges'),
    tables.get('settings', 'model_facts'),
    tables.get('settings', 'price_lists'),
  ]);
  const { named, missing } = input.onlyServed
    ? findServedPrices(await tables.scan('channels'), target, prices)
    : { named: prices, missing: [] };
  const priced = listPricedModels(readCharges(rows).charges, clock.now());
  const unpriced = named.filter(({ model }) => !priced.has(model));
  const wanted = unpriced.filter(
    (price) => input.free?.includes(price.model) || !(isFree(price) || price.isIncomplete),
  );
  const left = unpriced.filter((price) => !wanted.includes(price));
  const free = left.filter(isFree).map(({ model }) => model);
  const incomplete = left.filter((price) => !isFree(price)).map(({ model }) => model);
  const suspicious = wanted
    .filter(({ input: cost, output }) => cost > suspiciousDollars || output > suspiciousDollars)
    .map(({ model }) => model);
  const charges = groupCharges(wanted, factor, chooseNextId(rows));
  refuseRoundedAway(charges, wanted);
  const facts = planFacts(known, named);
  const remembered = planMapping(lists, input.mapping);
  return {
    changes: [...charges.map(writeNewRule), ...facts.changes, ...remembered],
    effect: listTexts(
      `${input.rate === undefined ? 'The list is in yuan' : `$1 = ¥${input.rate}`}, plus ${input.markup} % markup. Prices are in yuan per million tokens.`,
      `Import ${formatCount(wanted.length, 'model')} in ${formatCount(charges.length, 'rule')}`,
      named.length > unpriced.length &&
        `Skip ${formatCount(named.length - unpriced.length, 'model')} that already ${named.length - unpriced.length === 1 ? 'has' : 'have'} a price: ${joinNames(named.filter((price) => !unpriced.includes(price)).map(({ model }) => model))}`,
      skipped.length > 0 &&
        `Skip ${formatCount(skipped.length, 'entry', 'entries')} without a price per token of text: ${joinNames(skipped)}`,
      free.length > 0 &&
        `Skip ${formatCount(free.length, 'model that is', 'models that are')} free in this list (use --free to import them): ${free.slice(0, 5).join(', ')}`,
      ...describeHours(wanted),
      ...describeTiers(wanted),
      ...describeUnread(wanted),
      facts.count > 0 &&
        `Save vendor, context and modalities of ${formatCount(facts.count, 'model')} (setting model_facts)`,
      remembered.length > 0 && `Save the columns of ${input.mapping?.vendor} (setting price_lists)`,
    ),
    warnings: listTexts(
      incomplete.length > 0 &&
        `Skip ${formatCount(incomplete.length, 'model')} without a price of input or of output (use --free to import it as 0): ${joinNames(incomplete)}`,
      suspicious.length > 0 &&
        `${joinNames(suspicious)}: above ${input.rate === undefined ? '¥' : '$'}1 per 1,000 tokens: check the unit of the list`,
    ),
    questions: charges.length > 0 ? [`Create ${formatCount(charges.length, 'rule')}?`] : [],
    charges,
    missing,
  };
}

/** Adds facts only to models without facts: an operator's own facts stay. */
function planFacts(known: RawRow | undefined, named: readonly ListedPrice[]) {
  const before = asRecord(plainValue(known?.['value']));
  const added = Object.fromEntries(
    named
      .flatMap(({ model, facts }) =>
        facts && !Object.hasOwn(before, model) ? [[model, facts] as const] : [],
      )
      .slice(0, Math.max(0, factsMax - Object.keys(before).length)),
  );
  const count = Object.keys(added).length;
  return {
    count,
    changes: count > 0 ? [writeSetting(known, 'model_facts', { value: { ...before, ...added } })] : [],
  };
}

function planMapping(known: RawRow | undefined, mapping: ImportInput['mapping']): RowWrite[] {
  if (!mapping) return [];
  const { vendor, ...how } = mapping;
  const before = asRecord(plainValue(known?.['value']));
  if (canonicalJson(before[vendor]) === canonicalJson(how)) return [];
  const value = { ...before, [vendor]: how };
  requireValid(readSetting({ name: 'price_lists', value }));
  return [writeSetting(known, 'price_lists', { value })];
}

function describeHours(prices: readonly ListedPrice[]): string[] {
  const withHours = prices.filter(({ offPeak }) => offPeak !== undefined);
  const priced = withHours.filter(({ offPeak }) => offPeak !== 'unread').map(({ model }) => model);
  const left = withHours.filter(({ offPeak }) => offPeak === 'unread').map(({ model }) => model);
  return listTexts(
    priced.length > 0 && `Off-peak prices become windows: ${priced.slice(0, 5).join(', ')}`,
    left.length > 0 &&
      `Off-peak hours can't be read, so the standard price applies all day: ${left.slice(0, 5).join(', ')}`,
  );
}

/** Calls may ask for a tier once a rule has its factor. */
function describeTiers(prices: readonly ListedPrice[]): string[] {
  const counted = countNames(prices.flatMap(({ serviceTiers }) => Object.keys(serviceTiers)));
  return listTexts(
    counted.length > 0 &&
      `Calls may ask for service tiers, so add their factors to the costs of channels: ${counted.join(', ')}`,
  );
}

const countNames = (names: readonly string[]): string[] =>
  [...Map.groupBy(names, (name) => name)].map(
    ([name, each]) => `${name} (${formatCount(each.length, 'model')})`,
  );

/** Why rules can't express a price of the list. The first match counts. */
const unreadReasons: [field: RegExp, reason: string][] = [
  [/_batches$/, 'the relay sells no batches'],
  [/reasoning/, 'a rule has only one output price, so calls that think may cost you more than they earn'],
  [/_per_request$/, 'a rule has either token prices or a price per call'],
  [/multiplier/, 'it depends on where you buy'],
  [
    /audio|character|dbu|grounding|image|pixel|query|search|second|session|video/,
    'it is not a price for text tokens',
  ],
  [
    /cost_per_token|token_cost/,
    'it is not one factor on all prices, or covers hours that no rule can express',
  ],
  [/./, 'no rule can express it'],
];

/** Lists the price fields that are not imported, with the number of models that have them. */
function describeUnread(prices: readonly ListedPrice[]): string[] {
  const byReason = Map.groupBy(
    prices.flatMap(({ unreadFields: unread }) => unread),
    (field) => unreadReasons.find(([pattern]) => pattern.test(field))?.[1] ?? '',
  );
  return [...byReason].map(
    ([reason, fields]) => `Not imported, because ${reason}: ${countNames(fields).join(', ')}`,
  );
}

const isFree = ({ input, output, tiers }: ListedPrice): boolean =>
  [{ input, output }, ...tiers].every((rates) => rates.input === 0n && rates.output === 0n);

/** A rate with too many zeros, or a list in another unit, would make its models free without a word. */
function refuseRoundedAway(charges: NewCharge[], prices: ListedPrice[]): void {
  const free = new Set(charges.flatMap(({ type, models }) => (type === 'non-billing' ? models : [])));
  const lost = prices.find((price) => free.has(price.model) && !isFree(price));
  if (lost)
    throw usageFailure(
      `the price of ${lost.model} is too small to charge in yuan: check --rate and the unit of the list`,
    );
}

function factorOf({ rate = '1', markup }: ImportInput): bigint {
  const yuan = parseDecimal(rate, factorDecimals) ?? 0n;
  const percent = parseDecimal(markup, factorDecimals) ?? -1n;
  if (yuan <= 0n) throw usageFailure('--rate: use yuan per dollar, for example 7.2');
  if (percent < 0n) throw usageFailure('--markup: use 0 or more percent');
  const hundred = 100n * 10n ** BigInt(factorDecimals);
  return divideHalfUp(yuan * (hundred + percent), hundred);
}

/** Finds the prices of served models: by the upstream name that the mapper gives, else by the public name. */
function findServedPrices(channels: unknown[], rules: { local: boolean }, prices: ListedPrice[]) {
  const listed = new Map(prices.map((price) => [price.model, price]));
  const served = new Map<string, ListedPrice | undefined>();
  for (const { state, models, mapper } of listUsableChannels(channels, rules)) {
    if (!state) continue;
    for (const model of models) {
      const upstream = Object.hasOwn(mapper, model) ? mapper[model] : undefined;
      served.set(model, served.get(model) ?? listed.get(upstream ?? model) ?? listed.get(model));
    }
  }
  return {
    named: [...served].flatMap(([model, price]) => (price ? [{ ...price, model }] : [])),
    missing: [...served].flatMap(([model, price]) => (price ? [] : [model])),
  };
}

/** Throws a Failure if nothing is left: the options do not fit the list. */
function selectPrices(list: PriceList, { prefix = '', models }: ImportInput): PriceList {
  const named = list.prices
    .filter(({ model }) => model.startsWith(prefix))
    .map((price) => Object.assign({}, price, { model: price.model.slice(prefix.length) }));
  const prices = models ? named.filter(({ model }) => models.includes(model)) : named;
  const some = list.prices.slice(0, 3).map(({ model }) => model);
  if (prices.length === 0) throw usageFailure(`no matching model in this list, which has ${some.join(', ')}`);
  return { ...list, prices: prices.filter(({ model }) => isModelName(model)) };
}

export type NewCharge = Omit<ChargeRow, 'anonymous'>;
/** One that is typed, and may be free without prices. */
export type OwnRule = Pick<NewCharge, 'id' | 'type' | 'models'> & Partial<NewCharge>;

/** Decimals to which yuan per 1,000 tokens are rounded. */
const priceDecimals = 9;
const factorDecimals = 12;

/** One rule for all models with the same prices and the same maximum; free models come first. */
function groupCharges(prices: ListedPrice[], factor: bigint, firstId: number): NewCharge[] {
  const inYuan = prices.map(
    ({ model, tiers, maxOutputTokens, offPeak, serviceTiers, unreadFields: _unread, ...rates }) => ({
      model,
      price: {
        ...convertRates(rates, factor),
        windows: buildWindows(offPeak, factor),
        tiers:
          tiers.length > 0
            ? tiers.map(({ above, ...tier }) => ({ above, ...convertRates(tier, factor) }))
            : undefined,
        service_tiers: Object.keys(serviceTiers).length > 0 ? serviceTiers : undefined,
        max_output_tokens: maxOutputTokens,
      },
    }),
  );
  return [...Map.groupBy(inYuan, ({ price }) => JSON.stringify(price)).values()]
    .flatMap((same) =>
      same.slice(0, 1).map(({ price }) => ({ price, models: same.map(({ model }) => model) })),
    )
    .toSorted((a, b) => a.price.output - b.price.output || a.price.input - b.price.input)
    .map(({ price, models }, at) => {
      const type = isFreeRule(price) ? ('non-billing' as const) : ('token-billing' as const);
      return Object.assign({ id: firstId + at, type, models: models.toSorted() }, price);
    });
}

function buildWindows(offPeak: ListedPrice['offPeak'], factor: bigint): NewCharge['windows'] {
  if (offPeak === undefined || offPeak === 'unread') return undefined;
  const rates = convertRates(offPeak.rates, factor);
  return offPeak.hours.map((hours) => Object.assign({ name: 'off-peak' }, hours, rates));
}

const isFreeRule = ({ tiers = [], ...base }: WrittenPrice): boolean =>
  [base, ...tiers].every(({ input, output }) => input === 0 && output === 0);

/** A free rule has no prices. */
export function writeNewRule({ id, type, models, ...prices }: OwnRule): RowWrite {
  const { max_output_tokens } = prices;
  const row = setAttributes(
    { id, type, models },
    type === 'non-billing' ? { max_output_tokens } : { ...prices },
  );
  requireValid(readRow(ChargeRow, row), 'nothing was written: ');
  const conflict = new Failure(
    `someone else created rule ${id} in the meantime: check \`charge list\` and try again`,
  );
  return { kind: 'create', table: 'charges', row, conflict };
}

/** Converts dollars per token to yuan per 1,000 tokens. Prices of the cache that are those of input are left out. */
function convertRates(rates: ListedRates, factor: bigint): WrittenRates {
  const differing = rateNames.flatMap((name) => {
    const dollars = rates[name];
    const isSame = name !== 'input' && name !== 'output' && dollars === rates.input;
    return dollars === undefined || isSame ? [] : [[name, yuanOf(dollars, factor)] as const];
  });
  return { input: 0, output: 0, ...Object.fromEntries(differing) };
}

/** `factor`: yuan per dollar, including the markup. */
function yuanOf(dollars: bigint, factor: bigint): number {
  const scale = 10n ** BigInt(dollarDecimals + factorDecimals - priceDecimals);
  return Number(formatDecimal(divideHalfUp(dollars * 1000n * factor, scale), priceDecimals));
}
