/** Has the relay refuse a key from now on; its row stays. */
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import { findKey } from './find-key.ts';

export interface DisableKeyChange {
  hash: string;
  attributes: { enabled: false };
}

export interface DisableKeyPlan extends Plan<DisableKeyChange> {
  changes: [DisableKeyChange];
  /** How to call the key in a message. */
  name: string;
}

/** @param written the key as an operator names it: see findKey */
export async function planDisableKey(ports: OperatorPorts, written: string): Promise<DisableKeyPlan> {
  const { hash, name } = await findKey(ports, written);
  return {
    changes: [{ hash, attributes: { enabled: false } }],
    effect: [`the relay refuses ${name} within 30 seconds`],
    questions: [`Disable ${name}?`],
    name,
  };
}

export async function carryOutDisableKey(
  { tables }: OperatorPorts,
  { changes: [{ hash, attributes }], name }: DisableKeyPlan,
): Promise<{ name: string }> {
  if (!(await tables.update('keys', hash, attributes)))
    throw new Failure('the row is gone: somebody deleted it, so the key is refused already');
  return { name };
}
