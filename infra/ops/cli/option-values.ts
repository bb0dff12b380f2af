/** Parsers of option values. Commander prints the errors that they throw; the exit code is then 2. */
import { InvalidArgumentError } from 'commander';
import type { Attribution } from '../../../shared/billing/ledger-row.ts';
import { convertToPerThousand } from '../../../shared/billing/price.ts';
import { parseDecimal } from '../../../shared/billing/money.ts';
import { momentOf, wantedMoment, type Towards } from '../../../shared/operate/moment.ts';
import type { TypedPrice } from '../../../shared/operate/prices/first-prices.ts';
import { showEndUser, readTags } from '../../../shared/relay/call/attribution.ts';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';

function refuse(expected: string): never {
  throw new InvalidArgumentError(`Expected ${expected}.`);
}

export function parseList(written: string): string[] {
  const items = written
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (items.length === 0) refuse('names separated by commas');
  return items;
}

export function parseNumber(written: string): number {
  const number = Number(written);
  if (written.trim() === '' || !Number.isFinite(number)) refuse('a number');
  return number;
}

const parseSpan =
  (units: Readonly<Record<string, number>>, wanted: string) =>
  (written: string): number => {
    const [, number, unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?)([a-z]*)$/.exec(written.trim()) ?? [];
    const size = Object.hasOwn(units, unit) ? units[unit] : undefined;
    return number === undefined || size === undefined ? refuse(wanted) : Number(number) * size;
  };

/** `48`, `48h` or `7d` as hours. */
export const parseHours = parseSpan({ '': 1, h: 1, d: 24 }, 'a duration such as 48h or 7d');
/** `800ms`, `5s` or `2m` as milliseconds. */
export const parseDuration = parseSpan({ ms: 1, s: 1000, m: 60_000 }, 'a duration such as 800ms or 5s');

export function parseCount(written: string): number {
  if (!/^[1-9]\d{0,8}$/.test(written.trim())) refuse('a whole number above 0');
  return Number(written);
}

/** `gpt-4o=18/72`, added to those of earlier options. */
export function parseModelPrice(
  written: string,
  earlier: Record<string, TypedPrice> = {},
): Record<string, TypedPrice> {
  const [, model, prices] = /^([^=]+)=(.+)$/.exec(written.trim()) ?? [];
  if (model === undefined || prices === undefined)
    refuse('a model and its price per million tokens, for example gpt-4o=18/72');
  return { ...earlier, [model.trim()]: parsePricePair(prices) };
}

/** As amounts are read everywhere, and not below zero. */
const isAmount = (written: string): boolean =>
  parseDecimal(written, 0) !== undefined && Number(written) >= 0 && Number.isFinite(Number(written));

/** Yuan per million tokens, as yuan per 1,000. */
export function parsePrice(written: string): number {
  const price = isAmount(written) ? convertToPerThousand(written) : undefined;
  if (price === undefined) refuse('yuan per million tokens with a decimal point, for example 18 or 0.15');
  return price;
}

/** `18/72` or `18 72`: input and output, yuan per million tokens. */
export function parsePricePair(written: string): TypedPrice {
  const [input, output, ...more] = written.trim().split(/[\s/]+/);
  if (input === undefined || output === undefined || more.length > 0)
    refuse('input and output prices per million tokens, for example 18/72');
  const pair = { input: parsePrice(input), output: parsePrice(output) };
  if (pair.input + pair.output === 0)
    throw new InvalidArgumentError('Use --free for models that cost nothing.');
  return pair;
}

export function parseTokens(written: string): number {
  const number = Number(written);
  if (!/^\d{1,12}$/.test(written.trim())) refuse('a number of tokens, for example 1200');
  return number;
}

/** Epoch milliseconds, of a clock that is asked later. */
export type Moment = (nowMs: number) => number;

const parseMoment =
  (towards: Towards) =>
  (written: string): Moment => {
    if (momentOf(written, 0, towards) === undefined) refuse(wantedMoment);
    return (nowMs) => momentOf(written, nowMs, towards) ?? nowMs;
  };

/** For rows, which keep a time in ISO 8601 as it was written, with its zone. */
export function parseFutureText(written: string): string {
  if (momentOf(written, 0, 'future') === undefined) refuse(wantedMoment);
  return written;
}

/** `2h` is two hours ago. */
export const parsePast = parseMoment('past');
/** `2h` is in two hours. */
export const parseFuture = parseMoment('future');

/** Options of commands that select by what clients name. */
export const callFilters = {
  '--end-user <name>': ['only calls for this end user, as named by the client', parseEndUser],
  '--tag <name=value>': ['only calls with this tag (a=b,c=d: with both)', parseTags],
} as const;

/** As rows and log lines keep it. */
function parseEndUser(written: string): string {
  return showEndUser(written) ?? refuse('the name of an end user');
}

function parseTags(written: string): Attribution['tags'] {
  try {
    return Object.fromEntries(readTags(written, '--tag'));
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    throw new InvalidArgumentError(error.message);
  }
}

/** Accepts a decimal of 0 or more and returns it as text, because floats do not hold money exactly. */
export function parseDecimalText(written: string): string {
  const decimal = written.trim().replace(/%$/, '');
  if (!isAmount(decimal)) refuse('a number with a decimal point, for example 7.2');
  return decimal;
}
