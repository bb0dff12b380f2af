/**
 * Resolves references `ssm:/relay/<stack>/...`, `secretsmanager:<stack>/...` and, locally, `env:NAME` to
 * secrets; caches them for five minutes. An error must never contain a value or text that may be one.
 */
import type { Clock } from '../../relay/ports/clock.ts';
import { SecretUnusable, type SecretStore } from '../../relay/ports/stores/secret-store.ts';
import type { Environment } from '../system/environment.ts';
import { ExpiringCache } from '../system/expiring-cache.ts';
import { awsSecretReader } from './aws-secret-reader.ts';

const lifetimeMs = 5 * 60_000;
const entriesMax = 1000;

export interface SecretStoreParts {
  environment: Environment;
  clock: Clock;
  /** The variables that `env:NAME` refers to. */
  variables?: Record<string, string | undefined>;
}

export function cachedSecretStore({
  environment,
  clock,
  variables = process.env,
}: SecretStoreParts): SecretStore {
  const cache = new ExpiringCache<string>({ clock, entriesMax, lifetimeMs: () => lifetimeMs });
  const aws = awsSecretReader(environment);

  const load = async (reference: string): Promise<string | undefined> => {
    const separator = reference.indexOf(':');
    const name = reference.slice(separator + 1);
    switch (reference.slice(0, separator)) {
      case 'ssm':
        return aws.parameter(name);
      case 'secretsmanager':
        return aws.managedSecret(name);
      case 'env':
        if (!environment.local) throw new SecretUnusable('malformed', 'env: works on the local stack only');
        if (variables[name] === undefined) throw new SecretUnusable('missing');
        return variables[name];
      default:
        // The message does not quote the reference: it may be the secret itself, entered by mistake.
        throw new SecretUnusable(
          'malformed',
          'a reference starts with ssm:, secretsmanager: or, locally, env:',
        );
    }
  };

  /** The last good value of each reference, used while a store does not answer. */
  const known = new Map<string, string>();
  const fetchValue = async (reference: string): Promise<string> => {
    try {
      const value = usable(await load(reference));
      if (known.size >= entriesMax) known.clear();
      known.set(reference, value);
      return value;
    } catch (error) {
      if (error instanceof SecretUnusable) known.delete(reference);
      const last = known.get(reference);
      if (last === undefined) throw error;
      return last;
    }
  };
  const read = (reference: string): Promise<string> => cache.get(reference, () => fetchValue(reference));

  return {
    read,
    async refresh(reference) {
      const before = known.get(reference);
      cache.delete(reference);
      try {
        return (await read(reference)) !== before;
      } catch {
        return false;
      }
    },
  };
}

/** Checks that the value can be sent in a request header. */
function usable(text: string | undefined): string {
  // Files and shell commands often add a trailing line feed.
  const value = text?.trim();
  if (!value) throw new SecretUnusable('malformed', 'the value is empty, or no text');
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
    throw new SecretUnusable('malformed', 'the value has a character that no header can carry');
  return value;
}
