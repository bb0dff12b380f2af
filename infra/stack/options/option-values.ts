/** Kinds of values that several options share. Every message says what the option expects. */
import * as z from 'zod/mini';

export const flag = z.boolean('true or false');

/** @param wanted the pattern in words */
export const matchText = (pattern: RegExp, wanted: string) =>
  z.string(wanted).check(z.regex(pattern, wanted));

export function matchCount(from: number, to: number) {
  const wanted = `a whole number from ${from} to ${to}`;
  return z.int(wanted).check(z.gte(from, wanted), z.lte(to, wanted));
}

const AnyMap = z.record(z.string(), z.unknown());

/** A map with these fields. The message names an unknown field. */
export const matchFields = <Shape extends Record<string, z.ZodMiniType>>(shape: Shape) =>
  z.strictObject(shape, {
    error: ({ input }) =>
      z.safeParse(AnyMap, input).success ? undefined : `a map {${Object.keys(shape).join(', ')}}`,
  });

export const email = matchText(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'an e-mail address');

const accountPart = String.raw`\d{12}`;
export const regionPart = '[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}';

export const regionPattern = new RegExp(`^${regionPart}$`);

interface Arn {
  service: string;
  /** A pattern. */
  resource: string;
  /** Default: every region. */
  region?: string;
  wanted: string;
}

export const matchArn = ({ service, resource, region = regionPart, wanted }: Arn) =>
  matchText(new RegExp(`^arn:aws:${service}:${region}:${accountPart}:${resource}$`), wanted);

/** The region in an ARN. */
export const regionOf = (name: string): string => name.split(':')[3] ?? '';
