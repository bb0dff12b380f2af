/** Stores an upstream's key under a name of the stack. Plans contain no value, so they can be shown. */
import { isSecretName, managedSecretName, parameterName } from '../../config/rows/secret-reference.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { SecretWrite } from '../secret-writer.ts';

export interface SecretInput {
  name: string;
  /** Store in Secrets Manager instead of SSM. */
  managed: boolean;
  /** Overwrite an existing value. */
  replace: boolean;
  /** The secret is the key of a channel that is being set up. Its name is the channel's id. */
  isOfNewChannel?: boolean;
}

export interface StoreSecretPlan extends Plan<SecretWrite> {
  /** The reference to write into rows. */
  reference: string;
}

/** Size limit of SSM's standard parameters, which are free of charge. */
const valueCharactersMax = 4096;

/** Throws a Failure if the target has no secret store or the name is invalid. */
export function planStoreSecret(
  { target }: Pick<OperatorPorts, 'target'>,
  { name, managed, replace, isOfNewChannel }: SecretInput,
): StoreSecretPlan {
  if (target.local)
    throw usageFailure(
      'there is no secret store beside local tables: set a variable in the shell of `npm start`, say OPENAI_API_KEY, ' +
        'and write env:OPENAI_API_KEY in the row',
    );
  if (!isSecretName(name))
    throw usageFailure('a name has the characters A-Z a-z 0-9 . _ - and / between parts');
  const { stack } = target;
  const stored = managed ? managedSecretName(stack, name) : parameterName(stack, name);
  const reference = `${managed ? 'secretsmanager' : 'ssm'}:${stored}`;
  const conflict = usageFailure(
    isOfNewChannel
      ? `there is a key at ${reference} already: repeat with --secret ${reference}, or choose another --id`
      : `there is a secret ${stored} already: choose another name, or add --replace`,
  );
  return {
    changes: [{ reference, replace, conflict }],
    effect: [
      replace
        ? `written over ${reference}: functions read it anew within 5 minutes, and at once after the upstream refused the old one`
        : `stored as ${reference}: write this reference into a row, as \`channel add --secret\` does`,
    ],
    questions: [],
    reference,
  };
}

/**
 * Throws a Failure if a value exists and the plan does not replace it.
 * @returns the reference
 */
export async function carryOutStoreSecret(
  { secrets }: Pick<OperatorPorts, 'secrets'>,
  { changes, reference }: StoreSecretPlan,
  value: string,
): Promise<string> {
  checkValue(value);
  for (const write of changes) await secrets.put(write, value);
  return reference;
}

function checkValue(value: string): void {
  if (value === '') throw usageFailure('no value was given on standard input');
  // A header can carry only these characters; others are most likely a pasting mistake.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageFailure('the value has blanks or other characters that no key has');
  if (value.length > valueCharactersMax)
    throw usageFailure(`the value has over ${valueCharactersMax} characters`);
}
