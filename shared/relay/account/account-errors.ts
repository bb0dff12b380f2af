/** What of an account's calls was refused or failed, as its customer sees it. */
import type { AccountErrors } from '../../wire/public/account.ts';
import type { HourOfRefusals } from '../ports/stores/refusal-counts.ts';

/** Newest hour first. */
export const accountErrors = (hours: readonly HourOfRefusals[]): AccountErrors[] =>
  hours.toReversed().flatMap(errorsOf);

const errorsOf = ({ hour, counts }: HourOfRefusals): AccountErrors[] =>
  Object.entries(counts)
    .toSorted(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
    .map(([code, count]) => ({ hour: Date.parse(`${hour}:00:00Z`) / 1000, code, count }));
