/** View: finds a request in the ledger or among open reservations. */
import { readAttempts } from '../../billing/attempts.ts';
import { inputParts, mapInputParts, type PartCounts } from '../../wire/chat-response.ts';
import { explainChargeAboveReserve, findRowProblem, tokensOf } from '../../billing/audit/recompute.ts';
import { type CloseRow, type LedgerRow, findLedgerTimeMs, formatTags } from '../../billing/ledger-row.ts';
import type { OpenEntry } from '../../billing/quota-item.ts';
import { requestTimeMs } from '../../wire/ids.ts';
import { findLateCharge } from '../ledger/ledger.ts';
import { Failure, formatMoney, usageFailure } from '../plan.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import {
  factorOne,
  findFactor,
  formatFactor,
  parsePrice,
  priceDecimals,
  formatRatePerMillion,
  listProducts,
  findTier,
  type Price,
  type Product,
  type TokenKind,
  type Tier,
} from '../../billing/price.ts';
import { formatDecimal } from '../../billing/money.ts';
import { isoTime } from '../../wire/iso-time.ts';

export type FoundRequest =
  | {
      kind: 'booked';
      row: LedgerRow;
      /** The late charge after the row, if any. */
      late: CloseRow | undefined;
      /** Why a charge does not follow from its row's other attributes; undefined: it does. */
      problem: string | undefined;
    }
  | { kind: 'open'; account: string; id: string; entry: OpenEntry };

type BookedRequest = Extract<FoundRequest, { kind: 'booked' }>;

/** @param written a request id, the id of an answer, or the ledger id of a grant */
export async function findRequest(ports: OperatorPorts, written: string): Promise<FoundRequest> {
  const found = (await findBookedRequest(ports, written)) ?? (await findOpenRequest(ports, written));
  if (found) return found;
  throw new Failure(explainNotFound(parseId(written)));
}

/** Reads only the ledger, two or three reads. */
export async function findBookedRequest(
  ports: OperatorPorts,
  written: string,
): Promise<BookedRequest | undefined> {
  const id = parseId(written);
  const isGrant = id.startsWith('grant#');
  if (!isGrant && requestTimeMs(id) === undefined)
    throw usageFailure(
      'invalid request id: use the 26 characters of the header x-request-id, or those after chatcmpl-',
    );
  const reading = await ports.ledger.request(id);
  if (reading === undefined) return undefined;
  if ('problem' in reading) throw new Failure(`the ledger row cannot be read: ${reading.problem}`);
  const { row } = reading;
  const late = await findLateCharge(ports, row);
  return { kind: 'booked', row, late, problem: findRowProblem(row) ?? (late && findRowProblem(late)) };
}

const parseId = (written: string): string => written.trim().replace(/^(chatcmpl-|resp-)/, '');

/** Looks through every account for its reservation. */
export async function findOpenRequest(
  { ledger }: OperatorPorts,
  written: string,
): Promise<FoundRequest | undefined> {
  const id = parseId(written);
  for await (const accounts of ledger.accounts()) {
    for (const account of accounts) {
      const reading = await ledger.quota(account);
      const entry = reading && 'row' in reading ? reading.row.open.get(id) : undefined;
      if (entry) return { kind: 'open', account, id, entry };
    }
  }
  return undefined;
}

export const explainNotFound = (id: string): string =>
  `no ledger row or open reservation has the id ${id}: the call was refused, was free, or has just ended`;

const idLength = 26;

/**
 * Reads the id of a request as a client saw it, whole or its beginning. Throws a Failure: the first 10 characters are the time, so
 * no shorter beginning says where to look. `timeMs`: when the request came.
 */
export function parseAskedId(written: string) {
  const text = written
    .trim()
    .toLowerCase()
    .replace(/^(chatcmpl|resp|req)[-_]/, '');
  const timeMs = text.length < 10 ? undefined : requestTimeMs(text.padEnd(idLength, '0'));
  if (timeMs === undefined)
    throw usageFailure(
      'invalid request id: use at least the first 10 of the 26 characters of the header x-request-id, or those after chatcmpl-',
    );
  return { text, isWhole: text.length === idLength, timeMs };
}

export type RequestStep = [what: string, words: string];

export const keepStepsWithWords = (
  steps: readonly [what: string, words: string | undefined][],
): RequestStep[] => steps.flatMap(([what, words]) => (words ? [[what, words] satisfies RequestStep] : []));

/**
 * View: the steps of the request behind a ledger row, in chronological order, including how its charge was calculated.
 * @param late what was charged after the row
 */
export function requestSteps(row: LedgerRow, late?: CloseRow): RequestStep[] {
  const booked: RequestStep = ['booked', row.at];
  if (row.kind === 'grant') return [['amount', formatMoney(row.amount)], ['reason', row.reason], booked];
  const { endpoint = '-', model, alias, key, charge } = row;
  const price = parsePrice(row.price);
  const back = row.reserved - charge;
  return keepStepsWithWords([
    ['started', isoTime(findLedgerTimeMs(row))],
    ['called', `${endpoint}, model ${model}${alias === undefined ? '' : `, alias ${alias}`}, key ${key}`],
    ['for', describeWhom(row)],
    ['price', price ? describePrice(price) : row.price],
    ['tariff', row.tariff],
    ['reserved', describeReserved(row)],
    ...describeFailures(row),
    ['served', describeServing(row)],
    ['ended', late ? describeExpiry(row) : describeEnd(row)],
    ...(price && row.kind === 'settled' ? explainTokens(row, price) : []),
    ['search', searchWords(row)],
    ['charged', describeCharge(row)],
    ['returned', back > 0n ? `${formatMoney(back)} to the balance` : undefined],
    ['excess', back < 0n ? `${formatMoney(-back)} more than reserved` : undefined],
    ['because', explainChargeAboveReserve(row)],
    ['bought', describeCost(row)],
    booked,
    // The call came to its end after all. Its row and this one are what it cost.
    ['then', late && describeEnd(late)],
    ['served', late && describeServing(late)],
    ['bought', late && describeCost(late)],
    ['difference', late && `${formatMoney(late.charge)}, charged late`],
    ['total', late && formatMoney(charge + late.charge)],
    ['booked', late?.at],
  ]);
}

/** Empty: its client named nobody. */
export const describeWhom = ({ end_user: endUser, tags }: Pick<CloseRow, 'end_user' | 'tags'>): string =>
  [endUser === undefined ? '' : `end user ${endUser}`, formatTags(tags)].filter(Boolean).join(', ');

function describeReserved(row: CloseRow): string {
  if (row.official) return 'nothing (official call)';
  const [item, month] = row.plan_slot?.split('@') ?? [];
  const search = row.reserved > 0n ? `, and ${formatMoney(row.reserved)} for its search` : '';
  if (item !== undefined) return `a call of the plan entry "${item}", month from ${month}${search}`;
  return `${formatMoney(row.reserved)} of the balance`;
}

/** The log shows more about these attempts, until its retention ends. */
function describeFailures(row: CloseRow): RequestStep[] {
  return readAttempts(row).flatMap(({ channel, outcome, endMs }, at, all): RequestStep[] => {
    if (outcome === '' || (at === all.length - 1 && row.tried === undefined)) return [];
    return [['failed', `channel ${channel}, ${outcome}${endMs === undefined ? '' : ` after ${endMs} ms`}`]];
  });
}

function describeServing({ channel, upstream_model, first_content_ms }: CloseRow): string | undefined {
  if (channel === undefined) return undefined;
  const first = first_content_ms === undefined ? '' : `, first content after ${first_content_ms} ms`;
  return `by channel ${channel}, as model ${upstream_model ?? '-'}${first}`;
}

function describeCost({ bought, search_bought: search }: CloseRow): string | undefined {
  const parts = [
    bought === undefined ? [] : `${formatMoney(bought)} at the channel's cost`,
    search === undefined ? [] : `${formatMoney(search)} for the search`,
  ];
  return parts.flat().join(', and ') || undefined;
}

const searchWords = ({ kind, search_price: price }: CloseRow): string | undefined =>
  price === undefined
    ? undefined
    : `${formatMoney(price)}${kind === 'expired' ? ', because it may have run' : ''}`;

const kindWords: Record<CloseRow['kind'], string> = {
  settled: 'settled: answered in full or in part',
  released: 'not charged: the call had no answer',
  expired: 'expired: the function died',
  cancelled: 'cancelled: the call never started',
};

function describeEnd({ kind, end, charge, search_price: search }: CloseRow): string {
  // Free and official calls, and those of a plan, have nothing to pay.
  const input = charge === 0n ? ', nothing is charged' : ', only the input is charged';
  const due = search ? ', only input and search are charged' : input;
  return `${kindWords[kind]}${kind === 'expired' ? due : ''}${end === undefined ? '' : ` (${end})`}`;
}

function describeExpiry({ charge, search_price: search }: CloseRow): string {
  const due = search ? 'input and search' : 'the input';
  return `expired: the function did not report in time${charge === 0n ? '' : `, with ${due} charged first`}`;
}

const productNames: Record<TokenKind, string> = {
  input: 'input',
  output: 'output',
  ...mapInputParts('name', ({ label }) => label),
};

/** The product is exact: unit prices have 12 decimals per 1,000 tokens. */
export const formatProduct = ([kind, tokens, rate]: Product): RequestStep => [
  productNames[kind],
  `${tokens} x ${formatRatePerMillion(rate)} / 1,000,000 = ${formatDecimal(rate * BigInt(tokens), priceDecimals + 3)}`,
];

/** Input and output always, of the cache only what there is. */
export const selectProducts = (products: Product[]): Product[] =>
  products.filter(([kind, tokens]) => tokens > 0 || kind === 'input' || kind === 'output');

function explainTokens(row: CloseRow, price: Price): RequestStep[] {
  const { prompt_tokens: input = 0, completion_tokens: output = 0, estimated, flag } = row;
  const why = flag === undefined ? '' : ` (${flag})`;
  const source = estimated ? `estimated by the relay${why}` : 'reported by the upstream';
  const words = cacheWords(row);
  const tokens = tokensOf(row);
  const isByToken = price.type === 'token-billing' && tokens;
  const products = isByToken ? listProducts(findTier(price.tiers, input), tokens) : [];
  return keepStepsWithWords([
    ['counted', `${input} input and ${output} output tokens, ${source}`],
    ['cache', words && `of the input: ${words}`],
    ...selectProducts(products).map(formatProduct),
    ['service tier', row.service_tier && `${row.service_tier}${isByToken ? describeFactor(price) : ''}`],
  ]);
}

function describeCharge(row: CloseRow): string {
  const charged = formatMoney(row.charge);
  if (row.official && row.cost !== undefined)
    return `${charged} (${formatMoney(row.cost)} without official mode)`;
  return row.kind === 'settled' && row.charge > 0n ? `${charged} (rounded half up to 9 decimals)` : charged;
}

/** Prompt tokens that came from the upstream's cache. */
export const cacheWords = (counts: PartCounts): string =>
  inputParts
    .flatMap(({ count, words }) => ((counts[count] ?? 0) > 0 ? [`${counts[count]} ${words}`] : []))
    .join(', ');

export function describePrice(price: Price): string {
  const rule = price.rule === null ? 'no rule' : `rule ${price.rule}`;
  if (price.type === 'non-billing') return `${rule}: free`;
  if (price.type === 'times-billing')
    return `${rule}: ¥${formatDecimal(price.perCall, priceDecimals)} per call${describeFactor(price)}`;
  const named = Object.entries(price.factors ?? {}).map(([tier, factor]) => `, x ${factor} in ${tier}`);
  return `${rule}: ${price.tiers.map(describeTier).join('; ')}${named.join('')}${describeFactor(price)}`;
}

function describeFactor(price: Price): string {
  const factor = findFactor(price);
  return factor === factorOne ? '' : `, x ${formatFactor(factor)}`;
}

/** Prices of parts of the input are named only where one differs from that of input. */
function describeTier({ above, rates }: Tier): string {
  const { input, output } = rates;
  const parts = inputParts.map(({ name, words }) => `, ¥${formatRatePerMillion(rates[name])} ${words}`);
  const differs = inputParts.some(({ name }) => rates[name] !== input);
  const tier = above > 0 ? `above ${above} input tokens, ` : '';
  return `${tier}¥${formatRatePerMillion(input)} per million input tokens${differs ? parts.join('') : ''}, ¥${formatRatePerMillion(output)} per million output tokens`;
}
