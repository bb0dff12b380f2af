/**
 * Reads secrets of one purpose by reference: `ssm:/relay/<stack>/...`, `secretsmanager:<stack>/...` or, locally, `env:NAME`.
 * Caches them for up to five minutes. An error must never contain a value or text that may be one.
 */
import {
  allowVariable,
  compareBinding,
  mayReadVariable,
  type SecretPurpose,
  type SecretUse,
} from '../../config/rows/secret-reference.ts';
import { within } from '../../relay/retry.ts';
import type { Clock, Random } from '../../relay/ports/host.ts';
import {
  SecretUnusable,
  type SecretStore,
  type UnusableReason,
  type SecretCheck,
} from '../../relay/ports/config-store.ts';
import type { Environment } from '../system/environment.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import { ExpiringCache, systemRandom } from '../system/node-ports.ts';
import { parameterStore, secretsManager, createAwsCalls } from '../aws/aws-calls.ts';

/** Values live between half of this and all of it, so that environments do not read at the same time. */
export const lifetimeMsMax = 5 * 60_000;
const staleLifetimeMs = 30_000;
/** Retries end after this time if there is no value yet. */
const readMsMax = 5_000;
/** A call waits this long for a new value while it has an old one. */
const renewMsMax = 500;
const firstPauseMs = 100;
const pauseMsMax = 1_000;
/** Refused calls read the secret again at most this often. */
const refreshEveryMs = 5_000;
const entriesMax = 1000;

interface SecretStoreDeps {
  environment: Environment;
  clock: Clock;
  /** Only secrets of this purpose are read, in case a row bypassed its check. */
  purpose: SecretPurpose;
  /** Spreads the reads of environments over time. */
  random?: Random;
  variables?: Record<string, string | undefined>;
}

export function createSecretStore({
  environment,
  clock,
  purpose,
  random = systemRandom,
  variables = process.env,
}: SecretStoreDeps): SecretStore {
  const cache = new ExpiringCache<{ value: string; isOld?: boolean }>({
    clock,
    entriesMax,
    lifetimeMs: ({ isOld }) => (isOld ? staleLifetimeMs : lifetimeMsMax * (1 - random.next() / 2)),
  });
  const load = createSecretLoader(environment, variables);
  /** Last good values, used while a store does not answer. */
  const lastValues = new Map<string, string>();

  const loadValue = async (reference: string): Promise<string> => {
    const untilMs = clock.now() + readMsMax;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      try {
        const value = checkValue(await load(reference));
        keepNewest(lastValues, entriesMax, reference, value);
        return value;
      } catch (error) {
        if (error instanceof SecretUnusable) lastValues.delete(reference);
        const waitMs = Math.ceil(pauseMs * random.next());
        if (error instanceof SecretUnusable || clock.now() + waitMs >= untilMs) throw error;
        await clock.sleep(waitMs);
      }
    }
  };

  const fetchValue = async (reference: string): Promise<{ value: string; isOld?: boolean }> => {
    const last = lastValues.get(reference);
    const loading = loadValue(reference).then((value) => ({ value }));
    if (last === undefined) return loading;
    const old = { value: last, isOld: true };
    // A late read continues and updates the last good value.
    const inTime = loading.catch((error: unknown) => {
      if (error instanceof SecretUnusable) throw error;
      return old;
    });
    return within(clock, renewMsMax, { work: inTime, late: old });
  };
  const read = async (reference: string, host?: string): Promise<string> => {
    refuseOtherUse(reference, { purpose, host }, environment);
    return (await cache.get(reference, () => fetchValue(reference))).value;
  };
  /** Shared by all calls that were refused with the same value. */
  const refreshes = new ExpiringCache<boolean>({ clock, entriesMax, lifetimeMs: () => refreshEveryMs });

  return {
    read,
    refresh: (reference) =>
      refreshes.get(reference, async () => {
        // The value that calls got last.
        const before = (await cache.take(reference)?.catch(() => undefined))?.value;
        const after = await read(reference).catch(() => before);
        return after !== before;
      }),
  };
}

/** Reads a reference once; a secret without text gives undefined. Throws SecretUnusable, or the store's error. */
function createSecretLoader(
  { aws, local, stack }: Environment,
  variables: Record<string, string | undefined>,
): (reference: string) => Promise<string | undefined> {
  const calls = { ssm: openCalls(parameterStore), secretsmanager: openCalls(secretsManager) };
  return async (reference) => {
    const separator = reference.indexOf(':');
    const name = reference.slice(separator + 1);
    switch (reference.slice(0, separator)) {
      case 'ssm': {
        refuseOutside(`/relay/${stack}/`, name);
        const reply = await calls.ssm('GetParameter', { Name: name, WithDecryption: true });
        return (reply as { Parameter?: { Value?: string } }).Parameter?.Value;
      }
      case 'secretsmanager': {
        refuseOutside(`${stack}/`, name);
        const reply = await calls.secretsmanager('GetSecretValue', { SecretId: name });
        return (reply as { SecretString?: string }).SecretString;
      }
      case 'env':
        if (!local) throw new SecretUnusable('malformed', 'env: works on the local stack only');
        if (variables[name] === undefined) throw new SecretUnusable('missing');
        return variables[name];
      default:
        // Never quote the reference: it may be the secret itself, entered by mistake.
        throw new SecretUnusable(
          'malformed',
          'a reference starts with ssm:, secretsmanager: or, locally, env:',
        );
    }
  };

  /** Tries once, because the caller repeats. */
  function openCalls(service: typeof parameterStore) {
    const call = createAwsCalls({ service, aws, attempts: 1, connectMsMax: 1000, tryMsMax: 2000 });
    return (operation: string, input: object): Promise<unknown> =>
      call(operation, input).catch((error: unknown) => {
        const reason = error instanceof Error ? permanentErrors[error.name] : undefined;
        throw reason ? new SecretUnusable(reason, '', { cause: error }) : error;
      });
  }
}

function refuseOtherUse(
  reference: string,
  use: SecretUse,
  { local, envSecrets = [] }: Pick<Environment, 'local' | 'envSecrets'>,
): void {
  const [, name] = /^env:(.*)$/s.exec(reference) ?? [];
  if (local && name !== undefined && !mayReadVariable(name, envSecrets, use))
    throw new SecretUnusable('access_denied', `allow it by ${allowVariable(name)}`);
  const binding = compareBinding(reference, use);
  if (binding === 'purpose' || binding === 'host')
    throw new SecretUnusable('access_denied', `it was stored for another ${binding}`);
}

function refuseOutside(prefix: string, name: string): void {
  if (!name.startsWith(prefix))
    throw new SecretUnusable('malformed', `this stack reads secrets under ${prefix} only`);
}

/** After any other error a retry may succeed. */
const permanentErrors: Record<string, UnusableReason> = {
  ParameterNotFound: 'missing',
  ParameterVersionNotFound: 'missing',
  ResourceNotFoundException: 'missing',
  InvalidRequestException: 'missing',
  AccessDeniedException: 'access_denied',
  ValidationException: 'malformed',
};

/** Returns a value that a request header can carry. */
function checkValue(text: string | undefined): string {
  // Files and shells often add a trailing line feed.
  const value = text?.trim();
  if (!value) throw new SecretUnusable('malformed', 'the value is empty, or no text');
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
    throw new SecretUnusable('malformed', 'the value has a character that no header can carry');
  return value;
}

// Reports unusable secrets for the marks of rows. Ignores stores that are busy or do not answer, because an operator cannot
// fix that in a row.

const reasonTexts: Record<UnusableReason, string> = {
  missing: 'missing: nothing has this name',
  access_denied: 'access denied: this stack may not read or decrypt it',
  malformed: 'malformed',
};

/** Marks of rows wait at most this long for secret stores. */
const waitMsMax = 10_000;
/** More would take the stores' rate from customers' calls. */
const readsAtOnce = 4;

interface SecretCheckDeps {
  secrets: Pick<SecretStore, 'read'>;
  clock: Clock;
  local: boolean;
}

export const createSecretCheck = ({ secrets, clock, local }: SecretCheckDeps): SecretCheck => ({
  async unusable(references) {
    const problems = new Map<string, string>();
    let isOver = false;
    const readable = references.filter((reference) => !local || reference.startsWith('env:'));
    const remaining = readable.values();
    const readRemaining = async (): Promise<void> => {
      for (const reference of remaining)
        try {
          if (isOver) return;
          await secrets.read(reference);
        } catch (error) {
          if (error instanceof SecretUnusable)
            problems.set(reference, [reasonTexts[error.reason], error.message || []].flat().join(': '));
        }
    };
    const tried = Array.from({ length: readsAtOnce }, readRemaining);
    await within(clock, waitMsMax, { work: Promise.all(tried), late: undefined });
    isOver = true;
    // Copied, so that a late reply cannot change it.
    return new Map(problems);
  },
});
