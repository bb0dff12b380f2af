/** Lists the billing rules as the relay reads them. */
import {
  ruleOf,
  sinceMs,
  costOf,
  formatPrice,
  productsOf,
  tierFor,
  type Price,
  type Product,
  type TokenCounts,
  priceOf,
  pricedModels,
} from '../../billing/price.ts';
import { ChargeRow, readCharge } from '../../config/rows/charge-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import type { NanoYuan } from '../../billing/amount.ts';
import { usageFailure, type Plan } from '../plan.ts';
import { readSetting } from '../../config/setting-rows.ts';
import { modelsNamedIn } from '../../config/cross-checks.ts';
import { usableChannels } from '../channels/list-channels.ts';

interface ReadCharges {
  /** Sorted by id. */
  charges: ChargeRow[];
  /** A sentence for each row that cannot be read. */
  problems: string[];
}

export interface ChargeList extends ReadCharges {
  /** The models of a rule that another one prices, now or, if the rule is not in force yet, from then on. */
  /** `byId`: both begin at the same time. */
  shadowed: { id: number; by: number; byId: boolean; models: string[] }[];
}

export async function listCharges({
  clock,
  tables,
}: Pick<OperatorPorts, 'clock' | 'tables'>): Promise<ChargeList> {
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const shadowed = charges.flatMap((rule) => {
    const atMs = Math.max(clock.now(), sinceMs(rule));
    const byRule = Map.groupBy(rule.models, (model) => ruleOf(charges, model, atMs) ?? rule);
    byRule.delete(rule);
    return [...byRule].map(([other, models]) => {
      const byId = sinceMs(other) === sinceMs(rule);
      return { id: rule.id, by: other.id, byId, models };
    });
  });
  return { charges, problems, shadowed };
}

export function readCharges(rows: RawRow[]): ReadCharges {
  const charges: ChargeRow[] = [];
  const problems: string[] = [];
  for (const raw of rows) {
    const reading = readRow(ChargeRow, raw);
    if ('problem' in reading) problems.push(`${String(raw['id'])} is not used: ${reading.problem}`);
    else charges.push(reading.row);
  }
  return { charges: charges.toSorted((a, b) => a.id - b.id), problems };
}

// Computes what a call would cost by the rows of `charges`, product by product, as the relay does.

export interface ExplainInput {
  model: string;
  tokens: TokenCounts;
  /** Epoch milliseconds; undefined: now. */
  atMs?: number | undefined;
}

export interface ChargeExplanation {
  atMs: number;
  /** Undefined: no rule in force names the model. */
  rule: ChargeRow | undefined;
  price: Price;
  /** The tier of the call: it holds for more input tokens than this. */
  above: number;
  /** Empty: the price is not by tokens. */
  products: Product[];
  cost: NanoYuan;
  /** The price as a ledger row would have it. */
  text: string;
  /** Sentences about rows that cannot be read, which price nothing. */
  problems: string[];
}

export async function explainCharge(
  { clock, tables }: Pick<OperatorPorts, 'clock' | 'tables'>,
  { model, tokens, atMs = clock.now() }: ExplainInput,
): Promise<ChargeExplanation> {
  const { prompt_tokens: input, prompt_tokens_details: parts } = tokens;
  if (parts && Object.values(parts).reduce((sum, count) => sum + count, 0) > input)
    throw usageFailure('--input is all input: what is cached and written is a part of it, never more');
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const price = priceOf(charges, model, atMs);
  const tier = price.type === 'token-billing' ? tierFor(price.tiers, input) : undefined;
  return {
    atMs,
    rule: ruleOf(charges, model, atMs),
    price,
    above: tier?.above ?? 0,
    products: tier ? productsOf(tier, tokens) : [],
    cost: costOf(price, tokens),
    text: formatPrice(price, tokens),
    problems,
  };
}

// View: served models without a price, and priced models that nobody serves.

export interface ChargeGap {
  /** Served without a price, and therefore free. */
  free: string[];
  /** Served without a price, and therefore refused. */
  refused: string[];
  /** Priced, and served by no channel that is on. */
  unused: string[];
}

export async function serviceGaps({
  clock,
  tables,
  target,
}: Pick<OperatorPorts, 'clock' | 'tables' | 'target'>): Promise<ChargeGap> {
  const [channels, charges, settings] = await Promise.all([
    tables.scan('channels'),
    tables.scan('charges'),
    tables.scan('settings'),
  ]);
  const on = usableChannels(channels, target).filter(({ state }) => state);
  const served = new Set(on.flatMap(({ models }) => models));
  const { charges: rules } = readCharges(charges);
  const priced = pricedModels(rules, clock.now());
  const unpriced = [...served].filter((model) => !priced.has(model)).toSorted();
  const row = settings.find(({ name }) => name === 'unpriced_models');
  const reading = row && readSetting(row);
  // One that cannot be read refuses, too.
  const areRefused =
    reading !== undefined && (!('row' in reading) || reading.row.unpricedModels === 'refuse');
  const unread = charges.filter((raw) => 'problem' in readCharge(raw));
  const refused = areRefused ? unpriced : modelsNamedIn(unread, unpriced);
  return {
    free: unpriced.filter((model) => !refused.includes(model)),
    refused,
    unused: [...priced].filter((model) => !served.has(model)).toSorted(),
  };
}

// Plans the setting that refuses calls of models without a price. One that is there stays as it is.

const name = 'unpriced_models';
const namesMax = 5;

/** @param known models that are looked at elsewhere: they get a price, or are warned of */
export async function planRefuseUnpriced(
  ports: Pick<OperatorPorts, 'clock' | 'tables' | 'target'>,
  known: readonly string[],
): Promise<Plan<RowWrite>> {
  const there = await ports.tables.get('settings', name);
  if (there === undefined) {
    const lost = (await serviceGaps(ports)).free.filter((model) => !known.includes(model));
    return {
      changes: [{ kind: 'create', table: 'settings', row: { name, value: 'refuse' } }],
      effect: ['calls of models without a price are refused (setting unpriced_models)'],
      questions: [],
      ...(lost.length > 0 && {
        warnings: [
          `served and free until now, refused from then on (${lost.length}): ${lost.slice(0, namesMax).join(', ')}`,
        ],
      }),
    };
  }
  const isRefusing = there['value'] === 'refuse';
  const warning = `the setting ${name} is not "refuse": models without a price are free`;
  return { changes: [], effect: [], questions: [], warnings: isRefusing ? [] : [warning] };
}
