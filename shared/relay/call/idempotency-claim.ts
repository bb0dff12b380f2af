/** Handles the header Idempotency-Key: one claim per API key and header value. Must never store an answer. */
import type { IdempotencyStore } from '../ports/stores/idempotency-store.ts';
import type { ChatCall } from './chat-call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { Log } from '../ports/telemetry.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

/** How long a killed invocation keeps its claim after its deadline, if it has no reservation that is swept. */
const graceMs = 120_000;
const keyPattern = /^[\x20-\x7e]{1,255}$/;

/** A request's claim on its Idempotency-Key. */
export interface HeldKey {
  /** Ends the claim. `free`: nothing was charged, so the key may be used again. Never rejects. */
  finish(free: boolean): Promise<void>;
}

/**
 * Claims the request's Idempotency-Key. Throws when the key is taken: answers are not stored, so a repeated
 * request is refused, free of charge.
 */
export async function claimIdempotencyKey(
  ports: { idempotency: IdempotencyStore; log: Log },
  call: ChatCall,
  { header, body }: { header: string; body: unknown },
): Promise<HeldKey> {
  if (!keyPattern.test(header)) throw new InvalidRequest('invalid_idempotency_key', null, malformed);
  const { requestId } = call.identity;
  const untilMs = call.deadlineMs + graceMs;
  const { hash: owner, account } = call.key;
  const claim = { owner, account, idempotencyKey: header, requestId, body, untilMs };
  const reply = await ports.idempotency.claim(claim);
  if (reply.state !== 'claimed') throw taken(reply.state, reply.requestId);
  return {
    finish: (free) =>
      ports.idempotency.finish(claim, free).catch((error: unknown) => ports.log.fault(requestId, error)),
  };
}

const malformed = 'The header Idempotency-Key must be 1 to 255 printable ASCII characters.';

/** What became of the first request, as the end of a sentence that begins with its id. */
const firsts = {
  running: ['request_in_progress', 'with this Idempotency-Key is still running.'],
  other_body: ['idempotency_key_reused', 'used this Idempotency-Key with another body. Use a new key.'],
  completed: [
    'request_already_completed',
    'with this Idempotency-Key was completed and charged. Answers are not stored: use a new key to ask again.',
  ],
} as const;

function taken(state: keyof typeof firsts, firstId: string): Refusal {
  const [code, words] = firsts[state];
  return refuse(code, `The request ${firstId} ${words}`, { headers: { 'x-should-retry': 'false' } });
}
