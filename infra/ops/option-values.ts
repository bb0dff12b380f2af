import { InvalidArgumentError } from 'commander';

/** Parsers of option values; commander prints what they throw, and the run ends with 2. */

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
