/**
 * Plans what makes a new relay charge for its models: their rules, and the setting that refuses calls of a model without
 * one. A model is free only if it is named. Never changes a rule or a setting that is there.
 */
import { pricedModels } from '../../billing/price-rule.ts';
import { ChargeRow } from '../../config/rows/charge-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { Failure, usable, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { planImport, type ImportInput } from './import-charges.ts';
import { readCharges } from './list-charges.ts';
import { planRefuseUnpriced } from './refuse-unpriced.ts';

/** Yuan per 1,000 tokens. */
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

export interface FirstPricesPlan extends Plan<RowWrite> {
  /** Models whose calls will be refused. */
  unpriced: string[];
}

export async function planFirstPrices(
  ports: Pick<OperatorPorts, 'clock' | 'tables' | 'target'>,
  { models, free, typed, list }: FirstPrices,
): Promise<FirstPricesPlan> {
  const stray = [...free, ...Object.keys(typed)].find((model) => !models.includes(model));
  if (stray !== undefined) throw usageFailure(`${stray} is none of the models to serve`);
  const rows = await ports.tables.scan('charges');
  const priced = pricedModels(readCharges(rows).charges, ports.clock.now());
  const open = models.filter((model) => !priced.has(model));
  const named = new Set([...free, ...Object.keys(typed)]);
  const wanted = open.filter((model) => !named.has(model));
  const imported =
    list && wanted.length > 0 ? await planImport(ports, { ...list, models: wanted }) : undefined;
  const listed = new Set(imported?.charges.flatMap((charge) => charge.models));
  const own = [
    ...rulesOfFree(open.filter((model) => free.includes(model))),
    ...open.flatMap((model) => {
      const price = Object.hasOwn(typed, model) ? typed[model] : undefined;
      return price ? [{ type: 'token-billing', models: [model], ...price }] : [];
    }),
  ];
  const ids = [...rows, ...(imported?.charges ?? [])]
    .map(({ id }) => Number(id))
    .filter(Number.isSafeInteger);
  const firstId = Math.max(0, ...ids) + 1;
  const setting = await planRefuseUnpriced(ports, models);
  return {
    changes: [
      ...setting.changes,
      ...(imported?.changes ?? []),
      ...own.map((rule, at) => createRule({ id: firstId + at, ...rule })),
    ],
    effect: [...setting.effect, ...(imported?.effect ?? []), ...own.map(ruleWords)],
    questions: [],
    ...(setting.warnings && { warnings: setting.warnings }),
    unpriced: wanted.filter((model) => !listed.has(model)),
  };
}

interface OwnRule extends Partial<TypedPrice> {
  type: string;
  models: string[];
}

const rulesOfFree = (models: string[]): OwnRule[] =>
  models.length > 0 ? [{ type: 'non-billing', models }] : [];

const ruleWords = ({ models, input, output }: OwnRule): string =>
  input === undefined
    ? `${models.join(', ')}: free`
    : `${models.join(', ')}: ${input} yuan per 1,000 input tokens, ${output} per 1,000 output tokens`;

function createRule(row: RawRow): RowWrite {
  usable(readRow(ChargeRow, row), 'nothing was written: ');
  const conflict = new Failure(
    `rule ${String(row['id'])} was made by somebody else meanwhile: repeat the command`,
  );
  return { kind: 'create', table: 'charges', row, conflict };
}
