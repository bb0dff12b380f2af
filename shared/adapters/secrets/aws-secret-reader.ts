/**
 * Reads one value from SSM or Secrets Manager. Distinguishes permanent errors from a store that did not
 * answer.
 */
import { SecretUnusable, type UnusableReason } from '../../relay/ports/stores/secret-store.ts';
import type { Environment } from '../system/environment.ts';
import { parameterStore, secretsManager } from '../aws/aws-endpoint.ts';
import { awsJsonCalls } from '../aws/aws-json-call.ts';

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

/** Returns the value. Undefined: the secret holds no text. Throws SecretUnusable, or the error of the call. */
export interface AwsSecretReader {
  /** A decrypted parameter of SSM; only under `/relay/<stack>/`. */
  parameter(name: string): Promise<string | undefined>;
  /** A secret of Secrets Manager; only under `<stack>/`. */
  managedSecret(name: string): Promise<string | undefined>;
}

/** Opens a connection at the first reference that needs it. Tries once: its caller repeats. */
export function awsSecretReader({ aws, stack }: Environment): AwsSecretReader {
  const parameters = awsJsonCalls({ service: parameterStore, aws, ...limits });
  const secrets = awsJsonCalls({ service: secretsManager, aws, ...limits });
  return {
    async parameter(Name) {
      refuseOutside(`/relay/${stack}/`, Name);
      const reply = await explained(parameters.call('GetParameter', { Name, WithDecryption: true }));
      return (reply as { Parameter?: { Value?: string } }).Parameter?.Value;
    },
    async managedSecret(SecretId) {
      refuseOutside(`${stack}/`, SecretId);
      const reply = await explained(secrets.call('GetSecretValue', { SecretId }));
      return (reply as { SecretString?: string }).SecretString;
    },
  };
}

const limits = { attempts: 1, connectMsMax: 1000, tryMsMax: 2000 };

function refuseOutside(prefix: string, name: string): void {
  if (!name.startsWith(prefix))
    throw new SecretUnusable('malformed', `this stack reads secrets under ${prefix} only`);
}

const explained = <Reply>(read: Promise<Reply>): Promise<Reply> =>
  read.catch((error: unknown) => {
    const reason = error instanceof Error ? permanent[error.name] : undefined;
    throw reason ? new SecretUnusable(reason, '', { cause: error }) : error;
  });
