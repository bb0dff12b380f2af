/** The secrets of a stack: kept in SSM or Secrets Manager, named by references in rows. */
import { SecretTaken, type SecretWriter } from '../../operate/secret-writer.ts';
import { Failure, usageFailure } from '../../operate/operator-failure.ts';
import { isOfStack, isSecretName, managedSecretName, parameterName } from '../../config/rows/secret-name.ts';
import { explainStoreError } from '../../../infra/ops/session/store-error.ts';
import type { Target } from '../../operate/operator-ports.ts';

/** What SSM takes without extra cost. */
const valueCharactersMax = 4096;
const clientSettings = {
  requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
};

export function awsSecretWriter(target: Target, environment: NodeJS.ProcessEnv): SecretWriter {
  return {
    async put(name, value, options) {
      checkWanted(target, name, value);
      if (options.managed) return putManagedSecret(target, name, value, options.replace);
      return putParameter(target, name, value, options.replace);
    },
    async read(reference) {
      const [store = '', ...rest] = reference.split(':');
      const name = rest.join(':');
      if (store === 'env') return fromEnvironment(environment, name);
      if (target.local)
        throw new Failure(
          `${reference} is stored in AWS, but these are local tables: write env:NAME in the row`,
        );
      if (!isOfStack(reference, target.stack))
        throw new Failure(`${reference} belongs to another stack than ${target.stack}`);
      const value = store === 'ssm' ? await getParameter(target, name) : await getManagedSecret(target, name);
      if (!value?.trim()) throw new Failure(`${reference} is empty`);
      return value.trim();
    },
  };
}

export function fromEnvironment(environment: NodeJS.ProcessEnv, name: string): string {
  const value = environment[name]?.trim();
  if (!value) throw new Failure(`the environment variable ${name} is not set in this shell`);
  return value;
}

function checkWanted(target: Target, name: string, value: string): void {
  if (target.local)
    throw usageFailure(
      'there is no secret store beside local tables: set a variable in the shell of `npm start`, say OPENAI_API_KEY, ' +
        'and write env:OPENAI_API_KEY in the row',
    );
  if (!isSecretName(name))
    throw usageFailure('a name has the characters A-Z a-z 0-9 . _ - and / between parts');
  if (value === '') throw usageFailure('no value was given on standard input');
  // A header cannot carry anything else, and what was pasted with more is not what was meant.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageFailure('the value has blanks or other characters that no key has');
  if (value.length > valueCharactersMax)
    throw usageFailure(`the value has over ${valueCharactersMax} characters`);
}

async function putParameter(target: Target, name: string, value: string, replace: boolean): Promise<string> {
  const { PutParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
  const Name = parameterName(target.stack, name);
  const command = new PutParameterCommand({ Name, Value: value, Type: 'SecureString', Overwrite: replace });
  await explained(target, 'SSM', Name, () => new SSMClient(clientSettings).send(command));
  return `ssm:${Name}`;
}

async function putManagedSecret(
  target: Target,
  name: string,
  value: string,
  replace: boolean,
): Promise<string> {
  const { CreateSecretCommand, PutSecretValueCommand, ResourceExistsException, SecretsManagerClient } =
    await import('@aws-sdk/client-secrets-manager');
  const client = new SecretsManagerClient(clientSettings);
  const Name = managedSecretName(target.stack, name);
  await explained(target, 'Secrets Manager', Name, async () => {
    try {
      await client.send(new CreateSecretCommand({ Name, SecretString: value }));
    } catch (error) {
      if (!replace || !(error instanceof ResourceExistsException)) throw error;
      await client.send(new PutSecretValueCommand({ SecretId: Name, SecretString: value }));
    }
  });
  return `secretsmanager:${Name}`;
}

async function getParameter(target: Target, Name: string): Promise<string | undefined> {
  const { GetParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
  const command = new GetParameterCommand({ Name, WithDecryption: true });
  const reply = await explained(target, 'SSM', Name, () => new SSMClient(clientSettings).send(command));
  return reply.Parameter?.Value;
}

async function getManagedSecret(target: Target, SecretId: string): Promise<string | undefined> {
  const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
  const command = new GetSecretValueCommand({ SecretId });
  const client = new SecretsManagerClient(clientSettings);
  return (await explained(target, 'Secrets Manager', SecretId, () => client.send(command))).SecretString;
}

async function explained<Result>(
  target: Target,
  store: string,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw explainSecretError(error, target, store, name);
  }
}

function explainSecretError(error: unknown, target: Target, store: string, name: string): Failure {
  const kind = error instanceof Error ? error.name : '';
  if (kind === 'ParameterAlreadyExists' || kind === 'ResourceExistsException')
    return new SecretTaken(`there is a secret ${name} already: choose another name, or add --replace`, 2);
  if (kind === 'ParameterNotFound' || kind === 'ResourceNotFoundException')
    return new Failure(`${store} has no ${name} in this account and region: see \`secret put\``);
  if (kind === 'AccessDeniedException')
    return new Failure(`${store} does not let these AWS credentials work on ${name}`);
  return explainStoreError(error, target, store);
}
