/** View: the steps of the request behind a ledger row, including how its charge was calculated. */
import { tokensOf } from '../../billing/audit/recompute.ts';
import { formatDecimal, formatYuan } from '../../billing/amount.ts';
import { type CloseRow, type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import {
  parsePrice,
  priceDecimals,
  ratePerMillion,
  productsOf,
  tierFor,
  type Price,
  type Product,
  type TokenKind,
} from '../../billing/price.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { cacheWords } from './cache-words.ts';
import { priceWords } from './price-words.ts';

export type RequestStep = [what: string, words: string];

/** Steps in chronological order. `late`: what was charged after the row. */
export function requestSteps(row: LedgerRow, late?: CloseRow): RequestStep[] {
  const booked: RequestStep = ['booked', row.at];
  if (row.kind === 'grant')
    return [['amount', `${formatYuan(row.amount)} yuan`], ['reason', row.reason], booked];
  const price = parsePrice(row.price);
  return [
    ['began', isoTime(ledgerTimeMs(row))],
    ['asked', `${row.endpoint ?? '-'}, model ${row.model}${aliasWords(row)}, key ${row.key}`],
    ['price', price ? priceWords(price) : row.price],
    ['reserved', reservedWords(row)],
    ...servedStep(row),
    ['ended', late ? silentWords(row) : endedWords(row)],
    ...(price && row.kind === 'settled' ? tokenSteps(row, price) : []),
    ['charged', chargedWords(row)],
    ...backStep(row),
    ...boughtStep(row),
    booked,
    ...(late ? lateSteps(row, late) : []),
  ];
}

const aliasWords = ({ alias }: CloseRow): string => (alias === undefined ? '' : ` by the alias ${alias}`);

function reservedWords(row: CloseRow): string {
  if (row.official) return 'nothing: official calls deduct nothing';
  const [item, month] = row.plan_slot?.split('@') ?? [];
  if (item !== undefined) return `a call of the plan entry "${item}", month from ${month}`;
  return `${formatYuan(row.reserved)} yuan of the balance`;
}

function servedStep({ channel, upstream_model, first_content_ms }: CloseRow): RequestStep[] {
  if (channel === undefined) return [];
  const first = first_content_ms === undefined ? '' : `, first content after ${first_content_ms} ms`;
  return [['served', `by channel ${channel}, as model ${upstream_model ?? '-'}${first}`]];
}

const boughtStep = ({ bought }: CloseRow): RequestStep[] =>
  bought === undefined ? [] : [['bought', `${formatYuan(bought)} yuan, by the channel's cost`]];

const kindWords: Record<CloseRow['kind'], string> = {
  settled: 'settled: there was an answer, or a part of one',
  released: 'released: no answer, so nothing is due',
  expired: 'expired: the function died',
  cancelled: 'cancelled: it never began',
};

const endedWords = (row: CloseRow): string => {
  const { kind, end } = row;
  const due = kind === 'expired' ? dueWords(row) : '';
  return `${kindWords[kind]}${due}${end === undefined ? '' : ` (${end})`}`;
};

/** Free and official calls, and those of a plan, have nothing to pay. */
const dueWords = ({ charge }: CloseRow): string =>
  charge === 0n ? ', and the balance pays nothing for it' : ', so the input alone is due';

const silentWords = ({ charge }: CloseRow): string =>
  `expired: nothing was heard of the function for too long${charge === 0n ? '' : ', so the input was charged at first'}`;

/** The call came to its end after all. Its row and this one are what it cost. */
const lateSteps = ({ charge }: CloseRow, late: CloseRow): RequestStep[] => [
  ['then', endedWords(late)],
  ...servedStep(late),
  ...boughtStep(late),
  ['difference', `${formatYuan(late.charge)} yuan, charged late`],
  ['in all', `${formatYuan(charge + late.charge)} yuan`],
  ['booked', late.at],
];

const productNames: Record<TokenKind, string> = {
  input: 'input',
  cachedInput: 'cached',
  cacheWrite: 'cache write',
  cacheWrite1h: 'write for 1 h',
  output: 'output',
};

/** The product is exact: unit prices have 12 decimals per 1,000 tokens. */
export const productStep = ([kind, tokens, rate]: Product): RequestStep => [
  productNames[kind],
  `${tokens} x ${ratePerMillion(rate)} / 1,000,000 = ${formatDecimal(rate * BigInt(tokens), priceDecimals + 3)}`,
];

/** Input and output always, of the cache only what there is. */
export const shownProducts = (products: Product[]): Product[] =>
  products.filter(([kind, tokens]) => tokens > 0 || kind === 'input' || kind === 'output');

function tokenSteps(row: CloseRow, price: Price): RequestStep[] {
  const { prompt_tokens: input = 0, completion_tokens: output = 0, estimated, flag } = row;
  const why = flag === undefined ? '' : ` (${flag})`;
  const source = estimated ? `the relay estimated${why}` : 'the upstream reported';
  const counted: RequestStep = ['counted', `${input} input and ${output} output tokens, which ${source}`];
  const words = cacheWords(row);
  const cache: RequestStep[] = words === '' ? [] : [['cache', `of the input: ${words}`]];
  const tokens = tokensOf(row);
  if (price.type !== 'token-billing' || !tokens) return [counted, ...cache];
  const products = productsOf(tierFor(price.tiers, input), tokens);
  return [counted, ...cache, ...shownProducts(products).map(productStep)];
}

function chargedWords(row: CloseRow): string {
  const charged = `${formatYuan(row.charge)} yuan`;
  if (row.official && row.cost !== undefined)
    return `${charged}; outside official mode it would have cost ${formatYuan(row.cost)} yuan`;
  return row.kind === 'settled' && row.charge > 0n
    ? `${charged}, rounded once, half up, to 9 decimals`
    : charged;
}

function backStep({ reserved, charge }: CloseRow): RequestStep[] {
  if (reserved === charge) return [];
  if (reserved > charge) return [['returned', `${formatYuan(reserved - charge)} yuan to the balance`]];
  return [['taken', `${formatYuan(charge - reserved)} yuan more than was reserved`]];
}
