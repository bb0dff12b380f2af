/**
 * Stores and reads the secrets of a stack in SSM or Secrets Manager, named by references in rows. Never
 * prints a value.
 */
import { allowVariable, isOfStack, mayReadVariable } from '../../config/rows/secret-reference.ts';
import { Failure } from '../../operate/plan.ts';
import type { Target, SecretWriter } from '../../operate/operator-ports.ts';
import { type AwsPlace, readEnvSecrets } from '../system/environment.ts';

const clientSettings = {
  requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
};

export interface SecretWriterParts {
  target: Target;
  place: AwsPlace;
  environment: NodeJS.ProcessEnv;
  /** Converts an error of the SDK to a Failure that tells the operator what to do. */
  explain: (error: unknown, where: string) => Error;
}

export function awsSecretWriter({
  target,
  place: at,
  environment,
  explain,
}: SecretWriterParts): SecretWriter {
  /** @param conflict the Failure to throw when the store reports that the secret already exists */
  const explained = async <Result>(
    work: Promise<Result>,
    { title, name }: Place,
    conflict?: Failure,
  ): Promise<Result> =>
    work.catch((error: unknown) => {
      const kind = error instanceof Error ? error.name : '';
      if (takenErrors.has(kind) && conflict) throw conflict;
      if (missingErrors.has(kind))
        throw new Failure(`${title} has no ${name} in this account and region: see \`secret put\``);
      throw explain(error, title);
    });
  return {
    async put({ reference, replace, conflict }, value) {
      const place = placeOf(reference, { ...clientSettings, ...at });
      await explained(place.put(place.name, value, replace), place, conflict);
    },
    async read(reference) {
      if (reference.startsWith('env:')) return ofRow(target, environment, reference.slice('env:'.length));
      if (target.local)
        throw new Failure(
          `${reference} is stored in AWS, but these are local tables: write env:NAME in the row`,
        );
      if (!isOfStack(reference, target.stack))
        throw new Failure(`${reference} belongs to another stack than ${target.stack}`);
      const place = placeOf(reference, { ...clientSettings, ...at });
      const value = (await explained(place.get(place.name), place))?.trim();
      if (!value) throw new Failure(`${reference} is empty`);
      return value;
    },
    variable: async (name) => fromEnvironment(environment, name),
  };
}

const takenErrors = new Set(['ParameterAlreadyExists', 'ResourceExistsException']);
const missingErrors = new Set(['ParameterNotFound', 'ResourceNotFoundException']);

/** A row may be another's work: it must not choose which variable of this shell is sent to its address. */
function ofRow({ local }: Target, environment: NodeJS.ProcessEnv, name: string): string {
  if (!local) throw new Failure('an env: reference works on a local stack only');
  if (!mayReadVariable(name, readEnvSecrets(environment)))
    throw new Failure(
      `rows may not read the environment variable ${name}: allow it by ${allowVariable(name)}, here and at \`npm start\``,
    );
  return fromEnvironment(environment, name);
}

function fromEnvironment(environment: NodeJS.ProcessEnv, name: string): string {
  const value = environment[name]?.trim();
  if (!value) throw new Failure(`the environment variable ${name} is not set in this shell`);
  return value;
}

interface SecretStore {
  title: string;
  put(name: string, value: string, replace: boolean): Promise<void>;
  get(name: string): Promise<string | undefined>;
}

type Place = SecretStore & { name: string };

type ClientSettings = typeof clientSettings & AwsPlace;

const placeOf = (reference: string, settings: ClientSettings): Place => ({
  ...(reference.startsWith('ssm:') ? parameters : managedSecrets)(settings),
  name: reference.slice(reference.indexOf(':') + 1),
});

const parameters = (settings: ClientSettings): SecretStore => ({
  title: 'SSM',
  async put(Name, Value, Overwrite) {
    const { PutParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
    const command = new PutParameterCommand({ Name, Value, Type: 'SecureString', Overwrite });
    await new SSMClient(settings).send(command);
  },
  async get(Name) {
    const { GetParameterCommand, SSMClient } = await import('@aws-sdk/client-ssm');
    const command = new GetParameterCommand({ Name, WithDecryption: true });
    return (await new SSMClient(settings).send(command)).Parameter?.Value;
  },
});

const managedSecrets = (settings: ClientSettings): SecretStore => ({
  title: 'Secrets Manager',
  async put(Name, SecretString, replace) {
    const { CreateSecretCommand, PutSecretValueCommand, ResourceExistsException, SecretsManagerClient } =
      await import('@aws-sdk/client-secrets-manager');
    const client = new SecretsManagerClient(settings);
    try {
      await client.send(new CreateSecretCommand({ Name, SecretString }));
    } catch (error) {
      if (!replace || !(error instanceof ResourceExistsException)) throw error;
      await client.send(new PutSecretValueCommand({ SecretId: Name, SecretString }));
    }
  },
  async get(SecretId) {
    const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
    const client = new SecretsManagerClient(settings);
    return (await client.send(new GetSecretValueCommand({ SecretId }))).SecretString;
  },
});
