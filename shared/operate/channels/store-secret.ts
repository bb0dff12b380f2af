/** Stores the key of an upstream under a name of the stack. Plans hold no value, so that they can be shown. */
import { isSecretName, managedSecretName, parameterName } from '../../config/rows/secret-reference.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { SecretWrite } from '../secret-writer.ts';

export interface SecretInput {
  name: string;
  /** In Secrets Manager instead of SSM. */
  managed: boolean;
  /** Write over the value that is there. */
  replace: boolean;
  /** It is the key of a channel that is being set up, whose id it has for a name. */
  isOfNewChannel?: boolean;
}

export interface StoreSecretPlan extends Plan<SecretWrite> {
  /** How rows will name the value. */
  reference: string;
}

/** What SSM takes without extra cost. */
const valueCharactersMax = 4096;

/** Throws a Failure where there is no store, and for a name that cannot be. */
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
        ? 'It is stored. Functions read it anew within 5 minutes, and at once after the upstream refused the old one.'
        : 'It is stored. Write this reference into a row, as `channel add --secret` does.',
    ],
    questions: [],
    reference,
  };
}

/**
 * Fails when there is a value already and the plan does not replace it.
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
  // A header cannot carry anything else, and what was pasted with more is not what was meant.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageFailure('the value has blanks or other characters that no key has');
  if (value.length > valueCharactersMax)
    throw usageFailure(`the value has over ${valueCharactersMax} characters`);
}
