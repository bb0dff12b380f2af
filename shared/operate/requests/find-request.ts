/** View: finds a request in the ledger or among open reservations. */
import { problemOf } from '../../billing/audit/recompute.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import type { OpenEntry } from '../../billing/quota-item.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export type FoundRequest =
  | {
      kind: 'booked';
      row: LedgerRow;
      /** Why the charge does not follow from the row's other attributes; undefined: it does. */
      problem: string | undefined;
    }
  | { kind: 'open'; account: string; id: string; entry: OpenEntry };

/** @param written a request id, the id of an answer, or the ledger id of a grant */
export async function findRequest(ports: OperatorPorts, written: string): Promise<FoundRequest> {
  const id = written.trim().replace(/^(chatcmpl-|resp-)/, '');
  const isGrant = id.startsWith('grant#');
  if (!isGrant && requestTimeMs(id) === undefined)
    throw usageFailure('a request id has 26 characters: the header x-request-id, or what follows chatcmpl-');
  const reading = await ports.ledger.request(id);
  if (reading === undefined) return findOpen(ports, id);
  if ('problem' in reading) throw new Failure(`the row cannot be read: ${reading.problem}`);
  return { kind: 'booked', row: reading.row, problem: problemOf(reading.row) };
}

async function findOpen({ ledger }: OperatorPorts, id: string): Promise<FoundRequest> {
  for await (const accounts of ledger.accounts()) {
    for (const account of accounts) {
      const reading = await ledger.quota(account);
      const entry = reading && 'row' in reading ? reading.row.open.get(id) : undefined;
      if (entry) return { kind: 'open', account, id, entry };
    }
  }
  throw new Failure(
    `no ledger row and no open reservation has the id ${id}: was it refused, or free of charge? Its log line says so`,
  );
}
