/** Has the relay refuse a key from now on; its row stays. */
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { findKey } from './find-key.ts';

export interface DisableKeyPlan extends Plan<RowWrite> {
  /** How to call the key in a message. */
  name: string;
}

/** @param written the key as an operator names it: see findKey */
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
