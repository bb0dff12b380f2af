/**
 * An accepted background call as it is stored with its queued response, for the run that answers it. Must hold no secret: neither
 * the key nor its header, only the row that the key was found by. Nothing is reserved for it: its run reserves.
 */
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { serializeTariff, type StoredTariff } from '../../billing/tariff.ts';
import { isRecord, type JsonRecord } from '../../wire/json.ts';
import type { ChatCall } from '../call/call.ts';
import type { StoredResponse } from '../ports/stored.ts';

/** How long after its acceptance a run may begin, and may wait for money and for a concurrency permit. */
const beginsWithinMs = 60_000;

type CallerFacts = Pick<ChatCall, 'key' | 'concurrencyGiven' | 'entry' | 'startedMs' | 'attribution'>;

export interface AcceptedCall extends CallerFacts {
  /** Until when it may begin, in epoch milliseconds. */
  untilMs: number;
  /** As the client sent it. */
  body: JsonRecord;
  /** The number of shards of the account's balance. */
  parts: number | undefined;
  account: AccountRow | undefined;
  tariff: StoredTariff;
  /** The rows of the account's plan. Missing in calls that an older version accepted. */
  plans?: Snapshot['plans'] | undefined;
  /** A version before decision 93 reserved when it accepted the call, under the call's id in this shard. */
  reservation?: { part: number } | undefined;
}

/** @param nowMs its acceptance, which may come long after it has arrived */
export function buildAcceptedCall(
  call: ChatCall,
  { body, nowMs }: { body: unknown; nowMs: number },
): AcceptedCall {
  const { key, shardCount: parts, concurrencyGiven, entry, startedMs, attribution, tariff } = call;
  return {
    untilMs: nowMs + beginsWithinMs,
    body: isRecord(body) ? body : {},
    key,
    // The stored tariff contains the prices.
    account: call.account && {
      ...call.account,
      prices: undefined,
      price_group: undefined,
      contact: undefined,
      note: undefined,
    },
    parts,
    concurrencyGiven,
    entry,
    startedMs,
    attribution,
    tariff: serializeTariff(tariff),
    plans: call.snapshot.plans.filter(({ level }) => level === call.account?.plan?.level),
  };
}

/** Missing once the response is answered. */
export const readAcceptedCall = ({ body }: Pick<StoredResponse, 'body'>): AcceptedCall | undefined =>
  (body.call ?? body.request) as AcceptedCall | undefined;

/** The run that claims a response so that no other can. */
export const nameWithdrawnRun = (id: string): string => `withdrawn ${id}`;

/** The name of its call: of its reservation, its log line, its ledger row. */
export const requestIdOf = (id: string): string => id.replace(/^resp-/, '');
