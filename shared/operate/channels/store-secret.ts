/** Stores the key of an upstream under a name of the stack. Plans hold no value, so that they can be shown. */
import { isSecretName, managedSecretName, parameterName } from '../../config/rows/secret-reference.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { PutOptions } from '../secret-writer.ts';

export interface SecretPut {
  name: string;
  options: PutOptions;
}

export interface StoreSecretPlan extends Plan<SecretPut> {
  /** How rows will name the value. */
  reference: string;
}

/** What SSM takes without extra cost. */
const valueCharactersMax = 4096;

/** Throws a Failure where there is no store, and for a name that cannot be. */
export function planStoreSecret(
  { target }: Pick<OperatorPorts, 'target'>,
  { name, options }: SecretPut,
): StoreSecretPlan {
  if (target.local)
    throw usageFailure(
      'there is no secret store beside local tables: set a variable in the shell of `npm start`, say OPENAI_API_KEY, ' +
        'and write env:OPENAI_API_KEY in the row',
    );
  if (!isSecretName(name))
    throw usageFailure('a name has the characters A-Z a-z 0-9 . _ - and / between parts');
  const { stack } = target;
  return {
    changes: [{ name, options }],
    effect: [
      options.replace
        ? 'It is stored. Functions read it anew within 5 minutes, and at once after the upstream refused the old one.'
        : 'It is stored. Write this reference into a row, as `channel add --secret` does.',
    ],
    questions: [],
    reference: options.managed
      ? `secretsmanager:${managedSecretName(stack, name)}`
      : `ssm:${parameterName(stack, name)}`,
  };
}

/** Throws SecretTaken when there is another value and the plan does not replace it. @returns the reference */
export async function carryOutStoreSecret(
  { secrets }: Pick<OperatorPorts, 'secrets'>,
  { changes, reference }: StoreSecretPlan,
  value: string,
): Promise<string> {
  checkValue(value);
  for (const { name, options } of changes) await secrets.put(name, value, options);
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
