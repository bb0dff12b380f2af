/**
 * A call with an Idempotency-Key: the first one claims it, its repeats are answered by what the first was. Loaded by the first
 * such call. Must never let a repeat be charged.
 */
import type { EndpointRequest } from '../endpoints/endpoint.ts';
import { claimIdempotencyKey, type HeldKey } from './call/idempotency.ts';
import type { ChatCall } from './call/call.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { RelayRequest, RelayResponse } from './http/http.ts';
import { Backoff } from './money/backoff.ts';
import { mayStore } from './stored/may-store.ts';
import { amongReads, countRead, StoredReader } from './stored/reads.ts';

interface KeyedCall {
  header: string;
  request: RelayRequest;
  body: unknown;
  read: EndpointRequest;
}

/** Throws when the key is taken and its first answer cannot be had. */
export async function claimed(
  ports: ChatPorts,
  call: ChatCall,
  { header, request, body, read }: KeyedCall,
): Promise<{ held: HeldKey } | { repeated: RelayResponse }> {
  const repeated = <T>(budgetMs: number, write: () => Promise<T>): Promise<T> =>
    new Backoff(ports, budgetMs).until(write);
  const before = read.storage?.background ? await import('./stored/repeated.ts') : undefined;
  const claim = await claimIdempotencyKey({ ...ports, repeated }, call, {
    header,
    body,
    keeps: mayStore(call),
    isStored: read.storage !== undefined,
    firstOf: (read) =>
      countRead(ports, call).then(() =>
        amongReads(ports, { key: call.key, requestId: request.id }, () =>
          read(new StoredReader(ports, call.key.account, request).admit),
        ),
      ),
    accepted: before && ((first) => before.acceptedBefore(ports, { call, read }, first)),
  });
  if ('held' in claim) return claim;
  const { repeatResult } = await import('./stored/repeated.ts');
  return { repeated: await repeatResult(ports, call, { ...claim, request }) };
}
