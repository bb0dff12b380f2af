/** Counts in the query of an account's routes. */
import { InvalidRequest } from '../../wire/invalid-request.ts';

/** A whole number from 1 to `max`, with no more digits than it; undefined: there is none. Throws an InvalidRequest. */
export function countParameter(query: URLSearchParams, name: string, max: number): number | undefined {
  const written = query.get(name);
  if (written === null) return undefined;
  const isShort = written.length <= String(max).length && /^\d+$/.test(written);
  const count = isShort ? Number(written) : 0;
  if (count >= 1 && count <= max) return count;
  throw new InvalidRequest(
    'invalid_value',
    name,
    `Invalid value for '${name}': a whole number from 1 to ${max} is wanted.`,
  );
}
