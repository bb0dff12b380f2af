import type { Clock } from '../../relay/ports/clock.ts';
import type { SecretStore } from '../../relay/ports/secret-store.ts';

/** Answers that will not be other ones in a moment, and what an operator is told of them. */
const definite: Record<string, string> = {
  SecretUnavailable: 'there is nothing behind it',
  ParameterNotFound: 'there is no parameter of this name',
  ResourceNotFoundException: 'there is no secret of this name',
  AccessDeniedException: 'access is denied',
};

/** A store that does not answer must not hold the marks of rows back. */
const patienceMs = 10_000;

/**
 * Tries references, and says of those that certainly cannot be read why. Silent about all others: a busy or unreachable
 * store is nothing that an operator has to mend in a row.
 * @param local true on the local stack
 */
export async function unreadableSecrets(
  secrets: Pick<SecretStore, 'read'>,
  clock: Clock,
  references: readonly string[],
  local: boolean,
): Promise<Map<string, string>> {
  const unreadable = new Map<string, string>();
  const waiting = new AbortController();
  // One machine has no secret store of AWS to ask.
  const askable = references.filter((reference) => !local || reference.startsWith('env:'));
  const tried = askable.map((reference) =>
    secrets.read(reference).then(
      () => {},
      (error: unknown) => {
        const why = error instanceof Error ? definite[error.name] : undefined;
        if (why !== undefined) unreadable.set(reference, why);
      },
    ),
  );
  await Promise.race([Promise.all(tried), clock.sleep(patienceMs, waiting.signal)]);
  waiting.abort();
  return new Map(unreadable);
}
