/** Deletes a stored response, as its customer could. A run that is answering it notices, and is settled. */
import type { ResponseHead } from '../../relay/ports/stored/stored-response.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';

type Deletion = Pick<ResponseHead, 'account' | 'id'>;

export function planDeleteResponse({ account, id, status }: ResponseHead): Plan<Deletion> {
  const runs = status === 'queued' || status === 'in_progress';
  return {
    changes: [{ account, id }],
    effect: [
      `${id} of account ${account} (${status}) and its events are deleted; conversations that go on from it end`,
      ...(runs ? ['its run is stopped, and what it used is charged'] : []),
    ],
    questions: [`Delete ${id}? Nobody can bring it back.`],
  };
}

export async function carryOutDeleteResponse(
  { responses }: Pick<OperatorPorts, 'responses'>,
  { changes }: Plan<Deletion>,
): Promise<void> {
  for (const { account, id } of changes)
    if (!(await responses.remove(account, id)))
      throw new Failure(`account ${account} has no stored response ${id} any more`);
}
