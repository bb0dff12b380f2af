/**
 * Plans what makes a new relay charge for its models: their rules, and the setting that refuses calls of a model without
 * one. A model is free only if it is named. Never changes a rule or a setting that is there.
 */
import { perMillion, listPricedModels, findRule, convertToPico } from '../../billing/price.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import type { OperatorPorts, RowWrite } from '../operator-ports.ts';
import { formatCount, usageFailure, type Plan } from '../plan.ts';
import { writeNewRule, planImport, type ImportInput, type OwnRule } from './import-charges.ts';
import { readCharges } from '../rows.ts';
import { chooseNextId, findServiceGaps } from './list-charges.ts';

/** Yuan per 1,000 tokens, as rows have them. */
export interface TypedPrice {
  input: number;
  output: number;
}

export interface FirstPrices {
  models: string[];
  /** Models that are to cost nothing. */
  free: string[];
  typed: Readonly<Record<string, TypedPrice>>;
  /** A public list, for models that are neither free nor typed. */
  list?: Omit<ImportInput, 'models' | 'onlyServed' | 'free'> | undefined;
}

export type FirstPricesPlan = Awaited<ReturnType<typeof planFirstPrices>>;

export async function planFirstPrices(ports: OperatorPorts, { models, free, typed, list }: FirstPrices) {
  const stray = [...free, ...Object.keys(typed)].find((model) => !models.includes(model));
  if (stray !== undefined) throw usageFailure(`${stray} is not one of the models to serve`);
  const both = free.find((model) => Object.hasOwn(typed, model));
  if (both !== undefined) throw usageFailure(`${both} has a price and is also listed as free: choose one`);
  const nothing = Object.keys(typed).find((model) => isNothing(typed[model]));
  if (nothing !== undefined)
    throw usageFailure(`the price of ${nothing} is too small to charge: use --free for free models`);
  const rows = await ports.tables.scan('charges');
  const { charges } = readCharges(rows);
  refuseOtherPrices(charges, { free, typed }, ports.clock.now());
  const priced = listPricedModels(charges, ports.clock.now());
  const open = models.filter((model) => !priced.has(model));
  const named = new Set([...free, ...Object.keys(typed)]);
  const wanted = open.filter((model) => !named.has(model));
  const imported =
    list && wanted.length > 0 ? await planImport(ports, { ...list, models: wanted }) : undefined;
  const listed = new Set(imported?.charges.flatMap((charge) => charge.models));
  const without = open.filter((model) => free.includes(model));
  const firstId = chooseNextId([...rows, ...(imported?.charges ?? [])]);
  const own = [
    ...(without.length > 0 ? [{ type: 'non-billing' as const, models: without }] : []),
    ...open.flatMap((model) => {
      const price = Object.hasOwn(typed, model) ? typed[model] : undefined;
      return price ? [{ type: 'token-billing' as const, models: [model], ...price }] : [];
    }),
  ].map((rule, at): OwnRule => Object.assign({ id: firstId + at }, rule));
  const setting = await planRefuseUnpriced(ports, models);
  return {
    changes: [...setting.changes, ...(imported?.changes ?? []), ...own.map(writeNewRule)],
    effect: [...setting.effect, ...(imported?.effect ?? []), ...own.map(describeRule)],
    questions: [],
    warnings: setting.warnings ?? [],
    unpriced: wanted.filter((model) => !listed.has(model)),
  };
}

/** A price that is asked for and not written would pass for the one in force. A repeat asks for what is there. */
function refuseOtherPrices(
  charges: ChargeRow[],
  { free, typed }: Pick<FirstPrices, 'free' | 'typed'>,
  nowMs: number,
): void {
  const asked = [...Object.entries(typed), ...free.map((model) => [model, undefined] as const)];
  for (const [model, price] of asked) {
    const rule = findRule(charges, model, nowMs);
    if (rule && !isPrice(rule, price))
      throw usageFailure(
        `${model} already has another price (rule ${rule.id}): leave out its price here, or change the rule with \`charge set ${rule.id}\``,
      );
  }
}

/** Bills are computed with so many decimals, and what is below is rounded away. */
const isNothing = ({ input, output }: TypedPrice = { input: 0, output: 0 }): boolean =>
  convertToPico(input) + convertToPico(output) === 0n;

const isPrice = (rule: ChargeRow, price: TypedPrice | undefined): boolean =>
  price === undefined
    ? rule.type === 'non-billing'
    : rule.type === 'token-billing' && rule.input === price.input && rule.output === price.output;

const describeRule = ({ models, input, output }: OwnRule): string =>
  input === undefined
    ? `Make ${models.join(', ')} free`
    : `Price ${models.join(', ')} at ¥${perMillion(input)} per million input tokens, ¥${perMillion(output ?? 0)} per million output tokens`;

const settingName = 'unpriced_models';
const namesMax = 5;

/**
 * A setting that is there stays as it is.
 * @param known models that are looked at elsewhere: they get a price, or are warned of
 */
async function planRefuseUnpriced(ports: OperatorPorts, known: readonly string[]): Promise<Plan<RowWrite>> {
  const there = await ports.tables.get('settings', settingName);
  if (there) {
    const isRefusing = there['value'] === 'refuse';
    const warning = `the setting ${settingName} is not "refuse": models without a price are free`;
    return { changes: [], effect: [], questions: [], warnings: isRefusing ? [] : [warning] };
  }
  const lost = (await findServiceGaps(ports)).free.filter((model) => !known.includes(model));
  const warning = `${formatCount(lost.length, 'model')} served for free so far will be refused: ${lost.slice(0, namesMax).join(', ')}`;
  return {
    changes: [{ kind: 'create', table: 'settings', row: { name: settingName, value: 'refuse' } }],
    effect: ['Refuse calls to models without a price (setting unpriced_models)'],
    questions: [],
    warnings: lost.length > 0 ? [warning] : [],
  };
}
