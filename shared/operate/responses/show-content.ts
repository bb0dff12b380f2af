/**
 * Shows the content of a stored response to an operator, who has to say why. Must never read it before the record of that
 * is written.
 */
import type { ResponseHead, StoredResponse } from '../../relay/ports/stored/stored-response.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { carryOutWrites } from '../row-writes.ts';

/** How long it is known who read what. */
const recordedSeconds = 400 * 24 * 60 * 60;
const suffixBytes = 4;

export interface ContentPlan extends Plan<RowWrite> {
  head: ResponseHead;
}

/** The record names the caller, as AWS knows them. */
export async function planShowContent(
  ports: OperatorPorts,
  head: ResponseHead,
  reason: string | undefined,
): Promise<ContentPlan> {
  if (reason === undefined || reason.trim() === '')
    throw usageFailure('--content needs --reason: it is recorded who read what, and why');
  const nowMs = ports.clock.now();
  const { account, id } = head;
  const by = await ports.operator();
  const row = {
    id: `content-read#${isoTime(nowMs)}#${ports.random.hex(suffixBytes)}`,
    account,
    response: id,
    by,
    reason,
    expires: Math.floor(nowMs / 1000) + recordedSeconds,
  };
  const conflict = new Failure('nothing was read: repeat the command');
  return {
    head,
    changes: [{ kind: 'create', table: 'runtime', row, conflict }],
    effect: [`the reading of ${id} by ${by} is recorded as ${row.id}`],
    questions: [],
  };
}

export async function carryOutShowContent(ports: OperatorPorts, plan: ContentPlan): Promise<StoredResponse> {
  await carryOutWrites(ports, plan);
  const { account, id } = plan.head;
  const found = await ports.responses.read(account, id);
  if (!found) throw new Failure(`${id} was deleted or has expired meanwhile`);
  return found;
}
