/** View: the steps of the request behind a ledger row, including how its charge was calculated. */
import { formatDecimal, formatYuan } from '../../billing/amount.ts';
import { type CloseRow, type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { parsePrice, type Price } from '../../billing/price.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { cacheWords } from './cache-words.ts';
import { priceWords } from './price-words.ts';

export type RequestStep = [what: string, words: string];

/** Steps in chronological order. */
export function requestSteps(row: LedgerRow): RequestStep[] {
  const booked: RequestStep = ['booked', row.at];
  if (row.kind === 'grant')
    return [['amount', `${formatYuan(row.amount)} yuan`], ['reason', row.reason], booked];
  const price = parsePrice(row.price);
  return [
    ['began', isoTime(ledgerTimeMs(row))],
    ['asked', `${row.endpoint ?? '-'}, model ${row.model}, key ${row.key}`],
    ['price', price ? priceWords(price) : row.price],
    ['reserved', reservedWords(row)],
    ...servedStep(row),
    ['ended', endedWords(row)],
    ...(price && row.kind === 'settled' ? tokenSteps(row, price) : []),
    ['charged', chargedWords(row)],
    ...backStep(row),
    ...boughtStep(row),
    booked,
  ];
}

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
  expired: 'expired: the function died, so the input alone is due',
  cancelled: 'cancelled: it never began',
};

const endedWords = ({ kind, end }: CloseRow): string =>
  `${kindWords[kind]}${end === undefined ? '' : ` (${end})`}`;

/** The product is exact: unit prices have 12 decimals and are per 1,000 tokens. */
const part = (tokens: number, pico: bigint): string =>
  `${tokens} x ${formatDecimal(pico, 12)} / 1,000 = ${formatDecimal(pico * BigInt(tokens), 15)}`;

function tokenSteps(row: CloseRow, price: Price): RequestStep[] {
  const { prompt_tokens: input = 0, completion_tokens: output = 0, estimated, flag } = row;
  const why = flag === undefined ? '' : ` (${flag})`;
  const source = estimated ? `the relay estimated or clamped${why}` : 'the upstream reported';
  const counted: RequestStep = ['counted', `${input} input and ${output} output tokens, which ${source}`];
  const words = cacheWords(row);
  const cache: RequestStep[] = words === '' ? [] : [['cache', `of the input: ${words}`]];
  if (price.type !== 'token-billing') return [counted, ...cache];
  return [counted, ...cache, ['input', part(input, price.input)], ['output', part(output, price.output)]];
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
