/** View: a stored response without its content. The account, which is part of its key, is found in the ledger. */
import type { ResponseHead } from '../../relay/ports/stored/stored-response.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { findRequest } from '../requests/find-request.ts';

export interface ResponseInput {
  /** As clients have it, or its request id. */
  id: string;
  /** Undefined: that of the ledger row of its call. */
  account?: string | undefined;
}

export async function findResponse(
  ports: OperatorPorts,
  { id: written, account }: ResponseInput,
): Promise<ResponseHead> {
  const requestId = written.trim().replace(/^resp-/, '');
  if (requestTimeMs(requestId) === undefined)
    throw usageFailure('the id of a response is resp- and 26 characters, which are its request id');
  const owner = account ?? (await ownerOf(ports, requestId));
  const head = await ports.responses.head(owner, `resp-${requestId}`);
  if (head) return head;
  throw new Failure(
    `account ${owner} has no stored response resp-${requestId}: it was not stored, was deleted or has expired`,
  );
}

async function ownerOf(ports: OperatorPorts, requestId: string): Promise<string> {
  const found = await findRequest(ports, requestId);
  return found.kind === 'open' ? found.account : found.row.account;
}
