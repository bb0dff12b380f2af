/**
 * The attribute types that the ops-edited tables share. Rows are typed by hand in a console, so a number may
 * arrive as "5", a flag as "true", and a list of strings as a string set; anything else is a problem, named.
 */
import * as z from 'zod/mini';

const numeric = /^-?\d+(\.\d+)?$/;
const isoTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

export const text = z.string().check(z.trim(), z.minLength(1));

const numberLike = z.union([z.number(), z.string().check(z.regex(numeric, 'a number is wanted'))]);
const toNumber = z.transform((value: number | string) => Number(value));

export const number = z.pipe(numberLike, toNumber);
export const amount = z.pipe(z.pipe(numberLike, toNumber), z.number().check(z.gte(0)));
export const integer = z.pipe(z.pipe(numberLike, toNumber), z.int());

export const flag = z.pipe(
  z.union([z.boolean(), z.enum(['true', 'false'])]),
  z.transform((value: boolean | 'true' | 'false') => value === true || value === 'true'),
);

/** A list keeps its order; a string set has none of its own, so it is sorted by name. */
export const textList = z.pipe(
  z.union([z.array(text), z.set(text)]),
  z.transform((value: string[] | Set<string>) => (Array.isArray(value) ? value : [...value].toSorted())),
);

/** ISO 8601, a date or a time with its zone; becomes epoch milliseconds. */
export const time = z.pipe(
  z.string().check(z.regex(isoTime, 'an ISO 8601 time with its zone is wanted, such as 2026-12-31T00:00:00Z')),
  z.pipe(
    z.transform((value: string) => Date.parse(value)),
    z.number('a time that exists is wanted'),
  ),
);
