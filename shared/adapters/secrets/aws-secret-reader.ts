/** Reads one value from SSM or Secrets Manager, and tells a permanent refusal from a store that did not answer. */
import { SecretUnusable, type UnusableReason } from '../../relay/ports/secret-store.ts';
import type { Environment } from '../system/environment.ts';

/** Permanent errors of both stores, by name; after any other error the same read may succeed. */
const permanent: Record<string, UnusableReason> = {
  ParameterNotFound: 'missing',
  ParameterVersionNotFound: 'missing',
  ResourceNotFoundException: 'missing',
  // The secret is marked for deletion.
  InvalidRequestException: 'missing',
  AccessDeniedException: 'access_denied',
  // No parameter or secret can have such a name.
  ValidationException: 'malformed',
};

/** A value; undefined: there is a secret, but no text in it. Throws SecretUnusable, or the SDK's error. */
export interface AwsSecretReader {
  /** A parameter of SSM, decrypted; only under `/relay/<stack>/`. */
  parameter(name: string): Promise<string | undefined>;
  /** A secret of Secrets Manager; only under `<stack>/`. */
  managedSecret(name: string): Promise<string | undefined>;
}

/** Each client loads with the first reference that needs it: most requests never do. */
export function awsSecretReader({ aws, stack }: Environment): AwsSecretReader {
  const settings = { ...aws, maxAttempts: 3, requestHandler: requestLimits };
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

const requestLimits = { connectionTimeout: 1000, requestTimeout: 3000, throwOnRequestTimeout: true };

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
