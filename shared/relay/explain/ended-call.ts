/** A call that has ended, for its story: what its stages returned. */
import { formatYuan, type NanoYuan } from '../../billing/amount.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { DispatchReport } from '../call/dispatch-report.ts';
import type { Refusal } from '../http/refusal.ts';

export interface EndedCall {
  requestId: string;
  endpoint: string;
  /** Undefined: the key was not found, so nobody is known. */
  account: string | undefined;
  /** As it was asked for, where none answered. */
  model: string | undefined;
  status: number;
  /** `completed`, `failed`, `refused`, `client_gone`. */
  end: string;
  refusal: Refusal | undefined;
  durationMs: number;
  /** Undefined: it was refused before anything was sent to an upstream. */
  dispatched?: DispatchedFacts | undefined;
}

export interface DispatchedFacts {
  call: ChatCall;
  report: DispatchReport;
  /** Undefined: nothing was. */
  reserved: ReservedFacts | undefined;
  heard: HeardFacts;
}

/** What was reserved. */
export interface ReservedFacts {
  /** Exact yuan. */
  yuan: string;
  /** Empty: the balance pays. */
  slot: string;
}

/** What the client was sent. Of a call that has no client, what it would have been. */
export interface HeardFacts {
  /** UTF-16 code units of the answer. */
  length: number;
  /** When the first of it was, in epoch milliseconds. Undefined: none was. */
  firstMs: number | undefined;
}

/** What the answer of a call came to. */
export interface AnsweredFacts {
  call: ChatCall;
  report: DispatchReport;
  ending: Pick<EndedCall, 'status' | 'end' | 'refusal' | 'durationMs'>;
  reserved: { entry: { amount: NanoYuan; slot: string } } | undefined;
  heard: HeardFacts;
}

export const endedOf = ({ call, report, ending, reserved, heard }: AnsweredFacts): EndedCall => ({
  requestId: call.identity.requestId,
  endpoint: call.endpoint,
  account: call.key.account,
  model: call.model.base,
  ...ending,
  dispatched: {
    call,
    report,
    reserved: reserved && { yuan: formatYuan(reserved.entry.amount), slot: reserved.entry.slot },
    heard,
  },
});
