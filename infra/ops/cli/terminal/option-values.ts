/** Parsers of option values. Commander prints the errors that they throw; the exit code is then 2. */
import * as z from 'zod/mini';
import { InvalidArgumentError } from 'commander';
import { time } from '../../../../shared/config/rows/attribute-schemas.ts';

/** The option of commands that can print JSON. */
export interface JsonOption {
  json?: boolean;
}

export function parseList(written: string): string[] {
  const items = written
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (items.length === 0) throw new InvalidArgumentError('Wanted names, separated by commas.');
  return items;
}

export function parseMapper(written: string): Record<string, string> {
  const pairs = parseList(written).map((pair) => pair.split('=').map((side) => side.trim()));
  if (pairs.some((pair) => pair.length !== 2 || pair.includes(''))) {
    throw new InvalidArgumentError('Wanted public=upstream pairs, separated by commas.');
  }
  return Object.fromEntries(pairs) as Record<string, string>;
}

export function parseNumber(written: string): number {
  const number = Number(written);
  if (written.trim() === '' || !Number.isFinite(number)) throw new InvalidArgumentError('Wanted a number.');
  return number;
}

/** A number of tokens. */
export function parseTokens(written: string): number {
  const number = Number(written);
  if (!/^\d{1,12}$/.test(written.trim()))
    throw new InvalidArgumentError('Wanted a number of tokens, such as 1200.');
  return number;
}

/** Epoch milliseconds. */
export function parseTime(written: string): number {
  const parsed = z.safeParse(time, written);
  if (!parsed.success)
    throw new InvalidArgumentError('Wanted a date or a time with its zone, such as 2026-11-01.');
  return parsed.data;
}

/** Accepts a decimal of 0 or more and returns it as text, because floats do not hold money exactly. */
export function parseDecimalText(written: string): string {
  const decimal = written.trim().replace(/%$/, '');
  if (!/^\d+(\.\d+)?$/.test(decimal)) throw new InvalidArgumentError('Wanted a number, such as 7.2.');
  return decimal;
}
