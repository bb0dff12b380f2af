/** Disables a key: the relay refuses it, and its row stays. */
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { findKey } from './find-key.ts';

export interface DisableKeyPlan extends Plan<RowWrite> {
  /** The key's name in messages. */
  name: string;
}

/** @param written the key, in a form that `findKey` accepts */
export async function planDisableKey(ports: OperatorPorts, written: string): Promise<DisableKeyPlan> {
  const { hash, name } = await findKey(ports, written);
  return {
    changes: [
      {
        kind: 'update',
        table: 'keys',
        key: { hash },
        attributes: { enabled: false },
        unchanged: {},
        conflict: new Failure('the row is gone: somebody deleted it, so the key is refused already'),
      },
    ],
    effect: [`the relay refuses ${name} within 30 seconds`],
    questions: [`Disable ${name}?`],
    name,
  };
}
