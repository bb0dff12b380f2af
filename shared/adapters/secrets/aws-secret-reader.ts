import { SecretMissing } from '../../relay/ports/secret-store.ts';
import type { Environment } from '../system/environment.ts';

/** A secret that cannot be had. The message may name the reference, never a value. */
export class SecretUnavailable extends SecretMissing {
  override readonly name = 'SecretUnavailable';
}

/** How the stores say that asking again is of no use. */
const definite = new Set([
  'ParameterNotFound',
  'ParameterVersionNotFound',
  'ResourceNotFoundException',
  'AccessDeniedException',
  'InvalidRequestException',
]);

export const isDefinite = (error: unknown): boolean =>
  error instanceof SecretMissing || (error instanceof Error && definite.has(error.name));

export interface AwsSecrets {
  /** A parameter of SSM, decrypted; only under `/relay/<stack>/`. */
  parameter(name: string): Promise<string | undefined>;
  /** A secret of Secrets Manager; only under `<stack>/`. */
  managedSecret(name: string): Promise<string | undefined>;
}

/** Both clients load with the first reference that needs them: most requests never do. */
export function awsSecrets({ aws, stack }: Environment): AwsSecrets {
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
      return (await getParameter(name)).Parameter?.Value;
    },
    async managedSecret(name) {
      refuseOutside(`${stack}/`, name);
      const getSecret = await openManagedSecrets();
      return (await getSecret(name)).SecretString;
    },
  };
}

const requestLimits = { connectionTimeout: 1000, requestTimeout: 3000, throwOnRequestTimeout: true };

function refuseOutside(prefix: string, name: string): void {
  if (!name.startsWith(prefix)) throw new SecretUnavailable(`This stack reads secrets under ${prefix} only.`);
}

function once<Value>(open: () => Promise<Value>): () => Promise<Value> {
  let opened: Promise<Value> | undefined;
  return () => (opened ??= open());
}
