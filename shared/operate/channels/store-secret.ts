/** Stores the key of an upstream under a name of the stack. Plans hold no value, so that they can be shown. */
import { isSecretName, managedSecretName, parameterName } from '../../config/rows/secret-reference.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';

export interface SecretInput {
  name: string;
  /** In Secrets Manager instead of SSM. */
  managed: boolean;
  /** Write over the value that is there. */
  replace: boolean;
}

export interface StoreSecretPlan extends Plan<{ reference: string; replace: boolean }> {
  /** How rows will name the value. */
  reference: string;
}

/** What SSM takes without extra cost. */
const valueCharactersMax = 4096;

/** Throws a Failure where there is no store, and for a name that cannot be. */
export function planStoreSecret(
  { target }: Pick<OperatorPorts, 'target'>,
  { name, managed, replace }: SecretInput,
): StoreSecretPlan {
  if (target.local)
    throw usageFailure(
      'there is no secret store beside local tables: set a variable in the shell of `npm start`, say OPENAI_API_KEY, ' +
        'and write env:OPENAI_API_KEY in the row',
    );
  if (!isSecretName(name))
    throw usageFailure('a name has the characters A-Z a-z 0-9 . _ - and / between parts');
  const { stack } = target;
  const reference = managed
    ? `secretsmanager:${managedSecretName(stack, name)}`
    : `ssm:${parameterName(stack, name)}`;
  return {
    changes: [{ reference, replace }],
    effect: [
      replace
        ? 'It is stored. Functions read it anew within 5 minutes, and at once after the upstream refused the old one.'
        : 'It is stored. Write this reference into a row, as `channel add --secret` does.',
    ],
    questions: [],
    reference,
  };
}

/**
 * Throws SecretTaken when there is a value already and the plan does not replace it.
 * @returns the reference
 */
export async function carryOutStoreSecret(
  { secrets }: Pick<OperatorPorts, 'secrets'>,
  { changes, reference }: StoreSecretPlan,
  value: string,
): Promise<string> {
  checkValue(value);
  for (const { reference: each, replace } of changes) await secrets.put(each, value, { replace });
  return reference;
}

function checkValue(value: string): void {
  if (value === '') throw usageFailure('no value was given on standard input');
  // A header cannot carry anything else, and what was pasted with more is not what was meant.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageFailure('the value has blanks or other characters that no key has');
  if (value.length > valueCharactersMax)
    throw usageFailure(`the value has over ${valueCharactersMax} characters`);
}
