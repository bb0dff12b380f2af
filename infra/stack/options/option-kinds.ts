/** Kinds of values of options. Every message says what is wanted. */
import * as z from 'zod/mini';

export const flag = z.boolean('true or false');

/** @param wanted the pattern in words */
export const text = (pattern: RegExp, wanted: string) => z.string(wanted).check(z.regex(pattern, wanted));

export function count(from: number, to: number) {
  const wanted = `a whole number from ${from} to ${to}`;
  return z.int(wanted).check(z.gte(from, wanted), z.lte(to, wanted));
}

const AnyMap = z.record(z.string(), z.unknown());

/** A map with these fields. An unknown one is named. */
export const fields = <Shape extends Record<string, z.ZodMiniType>>(shape: Shape) =>
  z.strictObject(shape, {
    error: ({ input }) =>
      z.safeParse(AnyMap, input).success ? undefined : `a map {${Object.keys(shape).join(', ')}}`,
  });

export const email = text(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'an e-mail address');

const accountPart = String.raw`\d{12}`;
const regionPart = '[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}';

export const regionPattern = new RegExp(`^${regionPart}$`);

interface Arn {
  service: string;
  /** A pattern. */
  resource: string;
  /** Absent: every one. */
  region?: string;
  wanted: string;
}

export const arn = ({ service, resource, region = regionPart, wanted }: Arn) =>
  text(new RegExp(`^arn:aws:${service}:${region}:${accountPart}:${resource}$`), wanted);

/** The region in an ARN. */
export const regionOf = (name: string): string => name.split(':')[3] ?? '';

/** Numbers of generated secrets, oldest first. */
export function secretNumbers(most: number) {
  const wanted = `a list of 1 to ${most} different whole numbers, the newest last, such as [1] or [1,2]`;
  return z.array(z.int(wanted).check(z.gte(1, wanted), z.lte(9999, wanted)), wanted).check(
    z.minLength(1, wanted),
    z.maxLength(most, wanted),
    z.refine((numbers) => new Set(numbers).size === numbers.length, wanted),
  );
}
