/**
 * What a run needs of the call that it answers, as it is stored with the queued response. Must hold no secret: neither the
 * key nor its header, only the row that the key was found by.
 */
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { Reservation } from '../../money/open-reservation.ts';
import type { StoredResponse } from '../../ports/stored/stored-response.ts';
import { handedReservation, type HandedReservation, type Waiting } from './handed-reservation.ts';

/** Another number says that a run of another version cannot read it. */
const format = 1;

/** How long after its acceptance a call may begin. */
export const beginsWithinMs = 60_000;

export interface HandedCall {
  format: typeof format;
  /** As the client sent it. */
  body: JsonRecord;
  key: ChatCall['key'];
  account?: ChatCall['account'];
  parts?: number | undefined;
  entry?: ChatCall['entry'];
  startedMs: number;
  /** Absent: nothing is reserved. */
  reservation?: HandedReservation | undefined;
}

export function handedCall(
  { key, account, parts, entry, startedMs }: ChatCall,
  { body, reservation }: { body: unknown; reservation: Reservation | undefined },
): JsonRecord {
  const payer = account && {
    account: account.account,
    plan: account.plan,
    concurrency: account.concurrency,
    rpm: account.rpm,
    tpm: account.tpm,
  };
  const handed: HandedCall = {
    format,
    body: isRecord(body) ? body : {},
    key,
    account: payer,
    parts,
    entry,
    startedMs,
    reservation: reservation && handedReservation(reservation),
  };
  return { ...handed };
}

/** Undefined: the response is answered, or another version stored it. */
export function callIn({ body }: Pick<StoredResponse, 'body'>): HandedCall | undefined {
  const { request } = body;
  return request?.['format'] === format ? (request as unknown as HandedCall) : undefined;
}

/** Undefined: nothing waits. */
export function waitingIn({ head, body }: StoredResponse): Waiting | undefined {
  const handed = callIn({ body })?.reservation;
  return handed && { account: head.account, id: requestIdOf(head.id), handed };
}

/** The run that claims a response so that no other can. */
export const withdrawnRun = (id: string): string => `withdrawn ${id}`;

/** The name of its call: of its reservation, its log line, its ledger row. */
export const requestIdOf = (id: string): string => id.replace(/^resp-/, '');

/** What a run reads of the request: its answer is made as events, whether or not somebody follows them. */
export const runBody = ({ body }: HandedCall): JsonRecord => ({ ...body, stream: true });
