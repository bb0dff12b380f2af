/** A thread of the server with a test handle that acts by the path. */
import { workerData } from 'node:worker_threads';
import { serveThread } from '../../infra/server/thread-calls.ts';
import type { ThreadStart } from '../../infra/server/call-thread.ts';
import { systemClock as clock, timeSortedIds } from '../../shared/adapters/system/node-ports.ts';
import { AnswerCut, type HostedHandle, type RelayRequest } from '../../shared/relay/http/http.ts';

export const secret = 'shown by the distribution';

export interface GatedStart extends ThreadStart {
  /** Counts of calls that block the thread or wait in it, whether they may continue, and closed sources. */
  gate: Int32Array<SharedArrayBuffer>;
}
export const gateOf = (): Int32Array<SharedArrayBuffer> => new Int32Array(new SharedArrayBuffer(12));
export const at = { blocked: 0, open: 1, returned: 2 };

const started = workerData as GatedStart | null;
const gate = started?.gate ?? gateOf();

function counted(place: number): void {
  Atomics.add(gate, place, 1);
  Atomics.notify(gate, place);
}

async function* texts(kind: string): AsyncGenerator<string, void, undefined> {
  try {
    yield 'one ';
    if (kind === '/v1/responses/cut') throw new AnswerCut();
    if (kind === '/v1/responses/endless') for (;;) yield 'x'.repeat(100_000);
    yield 'two ';
    yield 'three';
  } finally {
    counted(at.returned);
  }
}

function bodyOf(request: RelayRequest): string | AsyncIterable<string> {
  const { path, room } = request;
  if (path === '/v1/responses/blocked') {
    counted(at.blocked);
    Atomics.wait(gate, at.open, 0);
  }
  if (path === '/v1/responses/room') return String(room?.take(600_000));
  if (path === '/v1/responses/dies') process.exit(1);
  const isStream = ['cut', 'endless', 'stream'].some((kind) => path.endsWith(kind));
  return isStream ? texts(path) : `thread ${request.rawBody().length}`;
}

const hosted: HostedHandle = {
  async handle(request) {
    const { path, room, hostEnds } = request;
    const headers = { 'x-request-id': request.id };
    const answer = { status: 200, headers, done: Promise.resolve() };
    if (path === '/v1/responses/faulty') {
      room?.take(600_000);
      // Nobody catches it.
      setImmediate(() => {
        throw new Error('a fault of no call');
      });
    }
    const untilEnd = ['/v1/responses/faulty', '/v1/responses/waits'].includes(path);
    if (!untilEnd) return { ...answer, body: bodyOf(request) };
    counted(at.blocked);
    await new Promise<void>((resolve) => {
      hostEnds?.addEventListener('abort', () => resolve());
    });
    return { ...answer, body: 'ended' };
  },
  clock,
  ids: timeSortedIds(clock),
  log: { request: () => undefined, event: () => undefined, fault: () => undefined },
  originSecrets: [secret],
  local: true,
};

if (started?.gate)
  serveThread({ chat: hosted, responses: hosted, messages: hosted, catalog: hosted }, hosted.log);
