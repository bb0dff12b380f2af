import type { Clock } from '../../relay/ports/clock.ts';
import type { SecretStore } from '../../relay/ports/secret-store.ts';
import { awsSecrets, isDefinite, SecretUnavailable } from './aws-secret-reader.ts';
import type { Environment } from '../system/environment.ts';
import { ExpiringCache } from '../system/expiring-cache.ts';

const lifetimeMs = 5 * 60_000;
const entriesMax = 1000;

export interface SecretStoreParts {
  environment: Environment;
  clock: Clock;
  /** Where `env:NAME` is looked up. */
  variables?: Record<string, string | undefined>;
}

/**
 * Reads references of the forms `ssm:/relay/<stack>/...`, `secretsmanager:<stack>/...` and, locally, `env:NAME`; kept for
 * five minutes. Throws SecretUnavailable, or the SDK's error.
 */
export function secretStore({ environment, clock, variables = process.env }: SecretStoreParts): SecretStore {
  const cache = new ExpiringCache<string>({ clock, entriesMax, lifetimeMs: () => lifetimeMs });
  const aws = awsSecrets(environment);

  const load = async (reference: string): Promise<string | undefined> => {
    const separator = reference.indexOf(':');
    const name = reference.slice(separator + 1);
    switch (reference.slice(0, separator)) {
      case 'ssm':
        return aws.parameter(name);
      case 'secretsmanager':
        return aws.managedSecret(name);
      case 'env':
        if (!environment.local) throw new SecretUnavailable('env: references work on the local stack only.');
        return variables[name];
      default:
        // Not quoted: it may be the secret itself, typed into the wrong place.
        throw new SecretUnavailable(
          'A secret reference starts with ssm:, secretsmanager: or, locally, env:.',
        );
    }
  };

  /** The last good values: better than none while a store does not answer. */
  const known = new Map<string, string>();
  const fetchValue = async (reference: string): Promise<string> => {
    try {
      // A line feed at the end, as files and shells leave it, would break the request header.
      const value = (await load(reference))?.trim();
      if (!value) throw new SecretUnavailable(`${reference} is empty or does not exist.`);
      if (known.size >= entriesMax) known.clear();
      known.set(reference, value);
      return value;
    } catch (error) {
      if (isDefinite(error)) {
        known.delete(reference);
        throw error instanceof SecretUnavailable ? error : new SecretUnavailable(reference, { cause: error });
      }
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
