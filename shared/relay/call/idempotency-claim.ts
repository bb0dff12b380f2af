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
  if (!keyPattern.test(header)) throw malformed();
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

const malformed = (): InvalidRequest =>
  new InvalidRequest(
    'invalid_idempotency_key',
    null,
    'The header Idempotency-Key must be 1 to 255 printable ASCII characters.',
  );

function taken(state: 'running' | 'completed' | 'other_body', firstId: string): Refusal {
  const headers = { 'x-should-retry': 'false' };
  const first = `The request ${firstId}`;
  if (state === 'running')
    return refuse('request_in_progress', `${first} with this Idempotency-Key is still running.`, { headers });
  const reused = `${first} used this Idempotency-Key with another body. Use a new key.`;
  if (state === 'other_body') return refuse('idempotency_key_reused', reused, { headers });
  const words = `${first} with this Idempotency-Key was completed and charged. Answers are not stored: use a new key to ask again.`;
  return refuse('request_already_completed', words, { headers });
}
