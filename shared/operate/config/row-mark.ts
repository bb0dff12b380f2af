/** Whether a row is still as an operator looked at it: a form loaded before the edit of somebody else must not undo it. */
import { plainRow } from '../../config/rows/read-row.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import { Failure } from '../operator-failure.ts';

/** Of a row, or of the part of one that is edited alone. Short, and of no use to anybody else. */
export const rowMark = (row: unknown): string => fingerprint(canonicalJson(plainRow(row)) ?? '');

/**
 * Throws a Failure if the row is not as it was looked at.
 * @param name what an operator calls it
 * @param seen its `rowMark` then; undefined: it was not looked at, so nothing is compared
 */
export function refuseChanged(name: string, row: unknown, seen: string | undefined): void {
  if (seen !== undefined && rowMark(row) !== seen)
    throw new Failure(`${name} was changed by somebody else meanwhile: look at it again, then repeat`);
}
