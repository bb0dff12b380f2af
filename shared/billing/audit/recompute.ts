/** Recomputes a ledger row's charge from its other attributes, for `relay-ops audit`. */
import { mapInputParts } from '../../wire/chat-response.ts';
import {
  parsePrice,
  computeCost,
  computeInputCost,
  findFactor,
  productsPerNano,
  type Price,
  type TokenCounts,
} from '../price.ts';
import { formatYuan, type NanoYuan } from '../money.ts';
import { listPriceTexts, parseTariff, omittedTariff } from '../tariff.ts';
import { latePrefix, type CloseRow, type LedgerRow } from '../ledger-row.ts';

export function findRowProblem(row: LedgerRow): string | undefined {
  if (row.kind === 'grant') return undefined;
  const price = parsePrice(row.price);
  if (!price) return `its price ${JSON.stringify(row.price)} cannot be read`;
  if (row.id.startsWith(latePrefix)) return findTariffProblem(row) ?? findLateProblem(row, price);
  return (
    findTariffProblem(row) ??
    findTierProblem(row, price) ??
    findChargeProblem(row, price) ??
    findCostProblem(row, price)
  );
}

/** Compares the charge with the tariff of the reservation. Rows that charge nothing have no price to compare. */
function findTariffProblem({ id, kind, model, price, tariff, ...row }: CloseRow): string | undefined {
  const isCharged = kind === 'settled' || kind === 'expired';
  // A late row holds only the difference to what the expiry charged.
  const search = id.startsWith(latePrefix) ? undefined : row.search_price;
  if (tariff === undefined || tariff === omittedTariff || !(isCharged || search)) return undefined;
  const agreed = parseTariff(tariff, model);
  if (!agreed) return `its tariff ${JSON.stringify(tariff)} cannot be read`;
  if (search !== undefined && search !== agreed.search)
    return `its search was charged ${formatYuan(search)}, but accepted with ${tariff}`;
  return !isCharged || listPriceTexts(agreed, model).includes(price)
    ? undefined
    : `it was charged by ${price}, but accepted with ${tariff}`;
}

/** Returns undefined if the call cost no more than its reservation, or the account is metered and reserves nothing. */
export function explainChargeAboveReserve(row: CloseRow): string | undefined {
  const { metered, flag = '', search_price: search = 0n } = row;
  const [reserved, charge] = [row.reserved - search, row.charge - search];
  if (charge <= reserved || metered) return undefined;
  if (row.id.startsWith(latePrefix)) return 'it ended after its reservation had expired';
  const price = parsePrice(row.price);
  const tokens = tokensOf(row);
  if (findTariffProblem(row) !== undefined || price?.type !== 'token-billing' || !tokens)
    return 'its price differs from the price of its reservation';
  const { prompt_tokens: input, completion_tokens: output } = tokens;
  const ofInput = computeCost(price, { ...tokens, completion_tokens: 0 });
  const [part, count, covered] =
    ofInput > reserved
      ? (['input', input, Number((BigInt(input) * reserved) / ofInput)] as const)
      : (['output', output, Number((BigInt(output) * (reserved - ofInput)) / (charge - ofInput))] as const);
  const source = flag.includes(`${part}:`) ? `the relay estimated (${flag})` : 'the upstream reported';
  return `${source} ${count} ${part} tokens, of which the reservation covered ${covered}`;
}

/** The price names its tier, so the row's tokens must reach it. */
function findTierProblem({ kind, prompt_tokens: input }: CloseRow, price: Price): string | undefined {
  if (kind !== 'settled' || price.type !== 'token-billing' || input === undefined) return undefined;
  const [{ above }] = price.tiers;
  return input > above || above === 0
    ? undefined
    : `its price is for more than ${above} input tokens, but it has ${input}`;
}

function findChargeProblem(row: CloseRow, price: Price): string | undefined {
  const { search_price: search = 0n } = row;
  if (row.kind === 'cancelled') return requireCharge(row, [0n], 'it was cancelled');
  if (row.official) return requireCharge(row, [0n], 'it is official');
  if (row.kind === 'released') return requireCharge(row, [search], 'it was released');
  if (row.plan_slot !== undefined) return requireCharge(row, [search], 'its plan covers it');
  if (row.kind === 'expired') return findExpiryProblem(row, price);
  const due = listPermittedCharges(row, price);
  return due ? requireCharge(row, due, 'of its price and tokens') : 'its tokens are missing';
}

/**
 * A late charge is the difference to the expiry's charge, which is in another row and may be of another tier. That charge cannot have
 * been below zero.
 */
function findLateProblem(row: CloseRow, price: Price): string | undefined {
  const due = row.kind === 'released' ? [row.search_price ?? 0n] : listPermittedCharges(row, price);
  if (!due) return 'its tokens are missing';
  return due.some((whole) => whole >= row.charge)
    ? undefined
    : `its late charge is ${formatYuan(row.charge)}, but its tokens cost ${due.map(formatYuan).join(' or ')} yuan`;
}

function findCostProblem(row: CloseRow, price: Price): string | undefined {
  if (!row.official || row.kind !== 'settled') return undefined;
  const due = listPermittedCharges(row, price);
  if (due === undefined || (row.cost !== undefined && due.includes(row.cost))) return undefined;
  const said = row.cost === undefined ? 'nothing' : formatYuan(row.cost);
  return `its recorded cost is ${said}, expected ${due.map(formatYuan).join(' or ')} yuan`;
}

/** Permitted charges of a settled call with its search, or undefined if the row has no token counts. */
function listPermittedCharges(row: CloseRow, price: Price): NanoYuan[] | undefined {
  const { search_price: search = 0n } = row;
  const tokens = tokensOf(row) ?? (price.type === 'token-billing' ? undefined : noTokens);
  if (!tokens) return undefined;
  const due = computeCost(price, tokens) + search;
  // A price per call is due only if there was content: a complete but empty answer is free.
  return price.type === 'times-billing' ? [due, search] : [due];
}

const noTokens: TokenCounts = { prompt_tokens: 0, completion_tokens: 0 };

export function tokensOf(row: CloseRow): TokenCounts | undefined {
  const { prompt_tokens, completion_tokens } = row;
  if (prompt_tokens === undefined || completion_tokens === undefined) return undefined;
  const prompt_tokens_details = mapInputParts('count', ({ count }) => row[count]);
  return { prompt_tokens, completion_tokens, prompt_tokens_details };
}

/** An expired call is charged for its input, but its row has no token count. So the charge must be the price of some whole number of tokens. */
function findExpiryProblem(row: CloseRow, price: Price): string | undefined {
  if (row.charge < 0n || row.charge > row.reserved)
    return `it charges ${formatYuan(row.charge)} yuan, expected its input's price, at most the ${formatYuan(row.reserved)} reserved`;
  const { search_price: search = 0n } = row;
  const input = row.charge - search;
  if (input === 0n) return undefined;
  const perToken = price.type === 'token-billing' ? price.tiers[0].rates.input * findFactor(price) : 0n;
  if (perToken === 0n || input < 0n) return requireCharge(row, [search], 'its input is free');
  const nearest = Number((input * productsPerNano) / perToken);
  const fits = [nearest - 1, nearest, nearest + 1].some(
    (tokens) => tokens >= 0 && computeInputCost(price, tokens) === input,
  );
  return fits
    ? undefined
    : `it charges ${formatYuan(row.charge)} yuan, which no number of input tokens costs`;
}

function requireCharge(row: CloseRow, wanted: NanoYuan[], why: string): string | undefined {
  if (wanted.includes(row.charge)) return undefined;
  return `it charges ${formatYuan(row.charge)} yuan, expected ${wanted.map(formatYuan).join(' or ')} (${why})`;
}
