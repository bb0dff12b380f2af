import { pricedModels } from '../../billing/price.ts';
import { readFile } from 'node:fs/promises';
import { divideHalfUp, formatDecimal, parseDecimal } from '../../billing/amount.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { readChannel } from '../../config/compile/read-channel.ts';
import { chargeCells, chargeHead, readCharges } from './list-charges.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { dollarDecimals, readPriceList, type ListedPrice } from './price-list.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { confirm, remark, say, sayColumns } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface ImportOptions {
  /** Decimals as text. */
  rate: string;
  markup: string;
  onlyServed?: boolean;
  dryRun?: boolean;
  yes?: boolean;
}

/** Yuan per 1,000 tokens are rounded to this. */
const priceDecimals = 9;
const factorDecimals = 12;
/** A dollar per 1,000 tokens: dearer lists are mostly per 1,000 or per million, not per token. */
const suspiciousDollars = 10n ** BigInt(dollarDecimals - 3);

type NewCharge = Omit<ChargeRow, 'anonymous'>;

/** Makes billing rules from a price list: shows them, asks, writes them under the next free ids. */
export async function importCharges(session: Session, file: string, options: ImportOptions): Promise<void> {
  const factor = factorOf(options);
  const text = await readFile(file, 'utf8').catch(() => {
    throw usageFailure(`the file ${file} cannot be read`);
  });
  const { prices, skipped } = readPriceList(text);
  const rows = await session.tables.scan('charges');
  const named = options.onlyServed ? await pricesOfServed(session, prices) : prices;
  const priced = pricedModels(readCharges(rows).charges);
  const wanted = named.filter(({ model }) => !priced.has(model));
  const charges = group(wanted, factor, nextId(rows.map((row) => Number(row['id']))));

  remark(`1 US dollar = ${options.rate} yuan, plus ${options.markup} %. Prices are yuan per 1,000 tokens.`);
  if (charges.length > 0) sayColumns([chargeHead, ...charges.map(chargeCells)]);
  remark(
    `${wanted.length} models in ${charges.length} rules; ${named.length - wanted.length} are priced already, ${skipped} entries are no chat prices.`,
  );
  const dear = wanted.filter(({ input, output }) => input > suspiciousDollars || output > suspiciousDollars);
  if (dear.length > 0)
    remark(
      `warning: more than a dollar per 1,000 tokens, is the list per token? ${dear[0]?.model} and others`,
    );
  if (charges.length === 0) return say('nothing to write');
  if (options.dryRun) return say('nothing was written: --dry-run');
  await confirm(`Write these ${charges.length} rules?`, options);
  await write(session, charges);
}

function factorOf({ rate, markup }: ImportOptions): bigint {
  const yuan = parseDecimal(rate, factorDecimals) ?? 0n;
  const percent = parseDecimal(markup, factorDecimals) ?? 0n;
  if (yuan <= 0n) throw usageFailure('--rate: wanted yuan for one dollar, such as 7.2');
  if (percent < 0n) throw usageFailure('--markup: wanted percent, 0 or more');
  const hundred = 100n * 10n ** BigInt(factorDecimals);
  return divideHalfUp(yuan * (hundred + percent), hundred);
}

/** Served models by their public names; a mapper says which name of the list a public name stands for. */
async function pricesOfServed(session: Session, prices: ListedPrice[]): Promise<ListedPrice[]> {
  const listed = new Map(prices.map((price) => [price.model, price]));
  const served = new Map<string, ListedPrice | undefined>();
  for (const raw of await session.tables.scan('channels')) {
    const reading = readChannel(raw, session.target);
    if ('problem' in reading || !reading.row.state) continue;
    const { models, mapper } = reading.row;
    for (const model of models) {
      const upstream = Object.hasOwn(mapper, model) ? mapper[model] : undefined;
      const found = listed.get(upstream ?? model) ?? listed.get(model);
      served.set(model, served.get(model) ?? found);
    }
  }
  const missing = [...served].flatMap(([model, price]) => (price ? [] : [model]));
  if (missing.length > 0) remark(`not in the list: ${missing.join(', ')}`);
  return [...served].flatMap(([model, price]) => (price ? [{ ...price, model }] : []));
}

/** One rule for all models of one price, free ones first. */
function group(prices: ListedPrice[], factor: bigint, firstId: number): NewCharge[] {
  const groups = Map.groupBy(
    prices,
    ({ input, output }) => `${yuanOf(input, factor)} ${yuanOf(output, factor)}`,
  );
  return [...groups.values()]
    .toSorted(
      (a, b) =>
        Number((a[0]?.output ?? 0n) - (b[0]?.output ?? 0n)) ||
        Number((a[0]?.input ?? 0n) - (b[0]?.input ?? 0n)),
    )
    .map((same, at) => {
      const [input, output] = [same[0]?.input ?? 0n, same[0]?.output ?? 0n].map((cost) =>
        yuanOf(cost, factor),
      );
      return {
        id: firstId + at,
        type: input === 0 && output === 0 ? 'non-billing' : 'token-billing',
        models: same.map(({ model }) => model).toSorted(),
        input: input ?? 0,
        output: output ?? 0,
      };
    });
}

/** Dollars per token as yuan per 1,000 tokens. */
function yuanOf(dollars: bigint, factor: bigint): number {
  const scale = 10n ** BigInt(dollarDecimals + factorDecimals - priceDecimals);
  return Number(formatDecimal(divideHalfUp(dollars * 1000n * factor, scale), priceDecimals));
}

const nextId = (ids: number[]): number => Math.max(0, ...ids.filter(Number.isSafeInteger)) + 1;

async function write(session: Session, charges: NewCharge[]): Promise<void> {
  const progress = new Progress('rules written');
  for (const charge of charges) {
    const { id, type, models, input, output } = charge;
    const row = type === 'non-billing' ? { id, type, models } : { id, type, models, input, output };
    if (!(await session.tables.create('charges', row)))
      throw new Failure(
        `rule ${id} was made by somebody else meanwhile: look at \`charge list\`, then repeat`,
      );
    progress.add(1);
  }
  say(`${charges.length} rules are written; live within 10 seconds.`);
}
