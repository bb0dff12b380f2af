/**
 * Reads one value from SSM or Secrets Manager. Distinguishes permanent errors from a store that did not
 * answer.
 */
import { SecretUnusable, type UnusableReason } from '../../relay/ports/stores/secret-store.ts';
import type { Environment } from '../system/environment.ts';

/** Permanent errors of both stores, by name. After any other error a retry may succeed. */
const permanent: Record<string, UnusableReason> = {
  ParameterNotFound: 'missing',
  ParameterVersionNotFound: 'missing',
  ResourceNotFoundException: 'missing',
  // The secret is marked for deletion.
  InvalidRequestException: 'missing',
  AccessDeniedException: 'access_denied',
  // The name is not valid for a parameter or secret.
  ValidationException: 'malformed',
};

/** Returns the value. Undefined: the secret holds no text. Throws SecretUnusable, or the SDK's error. */
export interface AwsSecretReader {
  /** A decrypted parameter of SSM; only under `/relay/<stack>/`. */
  parameter(name: string): Promise<string | undefined>;
  /** A secret of Secrets Manager; only under `<stack>/`. */
  managedSecret(name: string): Promise<string | undefined>;
}

/** Imports each client at the first reference that needs it; most requests need neither. Tries once: its caller repeats. */
export function awsSecretReader({ aws, stack }: Environment): AwsSecretReader {
  const settings = { ...aws, maxAttempts: 1, requestHandler: requestLimits };
  const openParameters = once(async () => {
    const { GetParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
    const client = new SSMClient(settings);
    return (Name: string) => client.send(new GetParameterCommand({ Name, WithDecryption: true }));
  });
  const openManagedSecrets = once(async () => {
    const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
    const client = new SecretsManagerClient(settings);
    return (SecretId: string) => client.send(new GetSecretValueCommand({ SecretId }));
  });
  return {
    async parameter(name) {
      refuseOutside(`/relay/${stack}/`, name);
      const getParameter = await openParameters();
      return (await explained(getParameter(name))).Parameter?.Value;
    },
    async managedSecret(name) {
      refuseOutside(`${stack}/`, name);
      const getSecret = await openManagedSecrets();
      return (await explained(getSecret(name))).SecretString;
    },
  };
}

const requestLimits = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true };

function refuseOutside(prefix: string, name: string): void {
  if (!name.startsWith(prefix))
    throw new SecretUnusable('malformed', `this stack reads secrets under ${prefix} only`);
}

const explained = <Reply>(read: Promise<Reply>): Promise<Reply> =>
  read.catch((error: unknown) => {
    const reason = error instanceof Error ? permanent[error.name] : undefined;
    throw reason ? new SecretUnusable(reason, '', { cause: error }) : error;
  });

function once<Value>(open: () => Promise<Value>): () => Promise<Value> {
  let opened: Promise<Value> | undefined;
  return () => (opened ??= open());
}
