/**
 * Stores and reads the secrets of a stack: in SSM or Secrets Manager, named by references in rows. Never shows a value.
 */
import { isOfStack } from '../../config/rows/secret-reference.ts';
import { Failure } from '../../operate/operator-failure.ts';
import type { Target } from '../../operate/operator-ports.ts';
import { SecretTaken, type SecretWriter } from '../../operate/secret-writer.ts';

const clientSettings = {
  requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
};

/** Makes a Failure, which says what to do next, of an error of the SDK. */
type Explain = (error: unknown, where: string) => Error;
type Store = 'SSM' | 'Secrets Manager';

export interface SecretWriterParts {
  target: Target;
  environment: NodeJS.ProcessEnv;
  explain: Explain;
}

export function awsSecretWriter({ target, environment, explain }: SecretWriterParts): SecretWriter {
  const explained = async <Result>(store: Store, name: string, work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      throw secretFailure(error, store, name) ?? explain(error, store);
    });
  return {
    async put(reference, value, { replace }) {
      const { store, name } = partsOf(reference);
      await (store === 'ssm'
        ? explained('SSM', name, putParameter(name, value, replace))
        : explained('Secrets Manager', name, putManagedSecret(name, value, replace)));
    },
    async read(reference) {
      const { store, name } = partsOf(reference);
      if (store === 'env') return fromEnvironment(environment, name);
      if (target.local)
        throw new Failure(
          `${reference} is stored in AWS, but these are local tables: write env:NAME in the row`,
        );
      if (!isOfStack(reference, target.stack))
        throw new Failure(`${reference} belongs to another stack than ${target.stack}`);
      const value = await (store === 'ssm'
        ? explained('SSM', name, getParameter(name))
        : explained('Secrets Manager', name, getManagedSecret(name)));
      if (!value?.trim()) throw new Failure(`${reference} is empty`);
      return value.trim();
    },
  };
}

function partsOf(reference: string): { store: string; name: string } {
  const [store = '', ...rest] = reference.split(':');
  return { store, name: rest.join(':') };
}

function fromEnvironment(environment: NodeJS.ProcessEnv, name: string): string {
  const value = environment[name]?.trim();
  if (!value) throw new Failure(`the environment variable ${name} is not set in this shell`);
  return value;
}

async function putParameter(Name: string, value: string, replace: boolean): Promise<void> {
  const { PutParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
  const command = new PutParameterCommand({ Name, Value: value, Type: 'SecureString', Overwrite: replace });
  await new SSMClient(clientSettings).send(command);
}

async function putManagedSecret(Name: string, value: string, replace: boolean): Promise<void> {
  const { CreateSecretCommand, PutSecretValueCommand, ResourceExistsException, SecretsManagerClient } =
    await import('@aws-sdk/client-secrets-manager');
  const client = new SecretsManagerClient(clientSettings);
  try {
    await client.send(new CreateSecretCommand({ Name, SecretString: value }));
  } catch (error) {
    if (!replace || !(error instanceof ResourceExistsException)) throw error;
    await client.send(new PutSecretValueCommand({ SecretId: Name, SecretString: value }));
  }
}

async function getParameter(Name: string): Promise<string | undefined> {
  const { GetParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
  const command = new GetParameterCommand({ Name, WithDecryption: true });
  return (await new SSMClient(clientSettings).send(command)).Parameter?.Value;
}

async function getManagedSecret(SecretId: string): Promise<string | undefined> {
  const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
  return (await new SecretsManagerClient(clientSettings).send(new GetSecretValueCommand({ SecretId })))
    .SecretString;
}

/** Undefined: the error is none that names a secret. */
function secretFailure(error: unknown, store: string, name: string): Failure | undefined {
  const kind = error instanceof Error ? error.name : '';
  if (kind === 'ParameterAlreadyExists' || kind === 'ResourceExistsException')
    return new SecretTaken(`there is a secret ${name} already: choose another name, or add --replace`, 2);
  if (kind === 'ParameterNotFound' || kind === 'ResourceNotFoundException')
    return new Failure(`${store} has no ${name} in this account and region: see \`secret put\``);
  if (kind === 'AccessDeniedException')
    return new Failure(`${store} does not let these AWS credentials work on ${name}`);
  return undefined;
}
