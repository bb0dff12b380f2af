/**
 * Reads the secrets that rows refer to and reports unusable ones for the rows' marks. Reports nothing when a
 * store is busy or does not answer, because an operator cannot fix that in a row.
 */
import type { Clock } from '../../relay/ports/clock.ts';
import {
  SecretUnusable,
  type SecretCheck,
  type SecretStore,
  type UnusableReason,
} from '../../relay/ports/stores/secret-store.ts';

const words: Record<UnusableReason, string> = {
  missing: 'missing: there is nothing of this name',
  access_denied: 'access denied: this stack may not read or decrypt it',
  malformed: 'malformed',
};

/** The longest time that the marks of rows wait for secret stores. */
const waitMsMax = 10_000;
/** More at once would take the stores' rate from the calls of customers. */
const readsAtOnce = 4;

export interface SecretCheckParts {
  secrets: Pick<SecretStore, 'read'>;
  clock: Clock;
  /** true on the local stack, which has no AWS secret store. */
  local: boolean;
}

export const secretCheck = ({ secrets, clock, local }: SecretCheckParts): SecretCheck => ({
  async unusable(references) {
    const found = new Map<string, string>();
    const waiting = new AbortController();
    const askable = references.filter((reference) => !local || reference.startsWith('env:'));
    const left = askable.values();
    const tryOthers = async (): Promise<void> => {
      for (const reference of left)
        try {
          if (waiting.signal.aborted) return;
          await secrets.read(reference);
        } catch (error) {
          if (error instanceof SecretUnusable)
            found.set(reference, [words[error.reason], error.message || []].flat().join(': '));
        }
    };
    const tried = Array.from({ length: readsAtOnce }, tryOthers);
    await Promise.race([Promise.all(tried), clock.sleep(waitMsMax, waiting.signal)]);
    waiting.abort();
    // Copied, so that a late reply does not change the returned map.
    return new Map(found);
  },
});
