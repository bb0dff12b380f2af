/** What `doctor` found out, one line each. */
import { Failure } from '../operator-failure.ts';

export interface Finding {
  check: string;
  state: 'ok' | 'attention' | 'does not apply';
  found: string;
  /** What to write or run, word for word. */
  set?: Setting;
}

export interface Setting {
  /** A file, or `shell`. */
  where: string;
  line: string;
}

export const ok = (check: string, found: string): Finding => ({ check, state: 'ok', found });

export const attention = (check: string, found: string, set?: Setting): Finding => ({
  check,
  state: 'attention',
  found,
  ...(set && { set }),
});

export const doesNotApply = (check: string, found: string): Finding => ({
  check,
  state: 'does not apply',
  found,
});

/** The findings of a check. What cannot be read is a finding of its own and spoils no other check. */
export async function findingsOf(check: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [attention(check, `not known: ${error.message}`)];
  }
}
