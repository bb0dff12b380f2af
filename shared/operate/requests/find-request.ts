/** View: finds a request in the ledger or among open reservations. */
import { problemOf } from '../../billing/audit/recompute.ts';
import type { CloseRow, LedgerRow } from '../../billing/ledger-row.ts';
import type { OpenEntry } from '../../billing/quota-item.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import { lateCharge } from '../ledger/late-charge.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export type FoundRequest =
  | {
      kind: 'booked';
      row: LedgerRow;
      /** What was charged after the row. Undefined: nothing was. */
      late: CloseRow | undefined;
      /** Why a charge does not follow from its row's other attributes; undefined: it does. */
      problem: string | undefined;
    }
  | { kind: 'open'; account: string; id: string; entry: OpenEntry };

type BookedRequest = Extract<FoundRequest, { kind: 'booked' }>;

/**
 * @param written a request id, the id of an answer, or the ledger id of a grant
 * @param mayBeOpen false: it has ended, so no account is looked through for its reservation
 */
export async function findRequest(
  ports: OperatorPorts,
  written: string,
  { mayBeOpen = true }: { mayBeOpen?: boolean } = {},
): Promise<FoundRequest> {
  const booked = await bookedRequest(ports, written);
  if (booked) return booked;
  if (mayBeOpen) return findOpen(ports, idIn(written));
  throw notFound(idIn(written));
}

/** Looks in the ledger alone, which is two reads, or three. Undefined: it has no such row. */
export async function bookedRequest(
  ports: Pick<OperatorPorts, 'ledger'>,
  written: string,
): Promise<BookedRequest | undefined> {
  const id = idIn(written);
  const isGrant = id.startsWith('grant#');
  if (!isGrant && requestTimeMs(id) === undefined)
    throw usageFailure('a request id has 26 characters: the header x-request-id, or what follows chatcmpl-');
  const reading = await ports.ledger.request(id);
  if (reading === undefined) return undefined;
  if ('problem' in reading) throw new Failure(`the row cannot be read: ${reading.problem}`);
  const { row } = reading;
  const late = await lateCharge(ports, row);
  return { kind: 'booked', row, late, problem: problemOf(row) ?? (late && problemOf(late)) };
}

const idIn = (written: string): string => written.trim().replace(/^(chatcmpl-|resp-)/, '');

async function findOpen({ ledger }: OperatorPorts, id: string): Promise<FoundRequest> {
  for await (const accounts of ledger.accounts()) {
    for (const account of accounts) {
      const reading = await ledger.quota(account);
      const entry = reading && 'row' in reading ? reading.row.open.get(id) : undefined;
      if (entry) return { kind: 'open', account, id, entry };
    }
  }
  throw notFound(id);
}

const notFound = (id: string): Failure =>
  new Failure(
    `no ledger row and no open reservation has the id ${id}: was it refused, or free of charge? Its log line says so`,
  );
