/** Stores, reads and removes a stack's secrets in SSM or Secrets Manager. Never prints a value. */
import {
  allowVariable,
  compareBinding,
  isOfStack,
  mayReadVariable,
  type SecretUse,
} from '../../config/rows/secret-reference.ts';
import { Failure } from '../../operate/plan.ts';
import type { Target, SecretWriter } from '../../operate/operator-ports.ts';
import type { AwsCaller } from '../aws/client-settings.ts';
import { readEnvSecrets } from '../system/environment.ts';
import type { StoredSecret } from './stored-secrets.ts';

export interface SecretWriterDeps extends AwsCaller {
  target: Target;
  explain: (error: unknown, where: string) => Error;
}

export function createSecretWriter({ target, explain, ...caller }: SecretWriterDeps): SecretWriter {
  const { environment } = caller;
  const loadSecret = async (reference: string): Promise<StoredSecret> =>
    (await import('./stored-secrets.ts')).openSecret(reference, caller);
  /** @param conflict thrown if the secret already exists */
  const explainFailure = async <Result>(
    work: Promise<Result>,
    { title, name }: StoredSecret,
    conflict?: Failure,
  ): Promise<Result> =>
    work.catch((error: unknown) => {
      const kind = error instanceof Error ? error.name : '';
      if (takenErrors.has(kind) && conflict) throw conflict;
      if (missingErrors.has(kind))
        throw new Failure(`${title} has no ${name} in this account and region: see \`secret new\``);
      throw explain(error, title);
    });
  return {
    async put({ reference, replace, conflict }, value) {
      const secret = await loadSecret(reference);
      await explainFailure(secret.put(value, replace), secret, conflict);
    },
    async read(reference, use) {
      if (reference.startsWith('env:'))
        return readRowVariable(target, environment, { name: reference.slice('env:'.length), use });
      const binding = compareBinding(reference, use);
      if (binding === 'purpose' || binding === 'host')
        throw new Failure(`${reference} was stored for another ${binding}`);
      if (target.local)
        throw new Failure(
          `${reference} is stored in AWS, but these are local tables: write env:NAME in the row`,
        );
      if (!isOfStack(reference, target.stack))
        throw new Failure(`${reference} belongs to another stack than ${target.stack}`);
      const secret = await loadSecret(reference);
      const value = (await explainFailure(secret.get(), secret))?.trim();
      if (!value) throw new Failure(`${reference} is empty`);
      return value;
    },
    async remove(reference) {
      const secret = await loadSecret(reference);
      await secret.remove().catch((error: unknown) => {
        if (!isGone(error)) throw explain(error, secret.title);
      });
    },
    variable: async (name) => readVariable(environment, name),
  };
}

const takenErrors = new Set(['ParameterAlreadyExists', 'ResourceExistsException']);
const missingErrors = new Set(['ParameterNotFound', 'ResourceNotFoundException']);

/** Secrets Manager refuses to delete twice, so a repeated `secret move` would never finish. */
const isGone = (error: unknown): boolean =>
  error instanceof Error &&
  (missingErrors.has(error.name) ||
    (error.name === 'InvalidRequestException' && /delet/i.test(error.message)));

/** Somebody else may have written the row: it must not choose which variable of this shell is sent out. */
function readRowVariable(
  { local }: Target,
  environment: NodeJS.ProcessEnv,
  { name, use }: { name: string; use: SecretUse },
): string {
  if (!local) throw new Failure('an env: reference works only on a local stack');
  if (!mayReadVariable(name, readEnvSecrets(environment), use))
    throw new Failure(
      `rows may not read the environment variable ${name}: allow it by ${allowVariable(name)}, here and at \`npm start\``,
    );
  return readVariable(environment, name);
}

function readVariable(environment: NodeJS.ProcessEnv, name: string): string {
  const value = environment[name]?.trim();
  if (!value) throw new Failure(`the environment variable ${name} is not set in this shell`);
  return value;
}
