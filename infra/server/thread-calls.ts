/** The thread's side: answers calls from the main thread. Reads one of them per turn of the event loop. */
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { createHttpEntry } from '../../shared/adapters/entry/http-entry.ts';
import type { HostedHandle, RelayResponse } from '../../shared/relay/http/http.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import type { ServedFunctionName } from '../stack/constructs/function-descriptions.ts';
import type { FromThread, LaneName, ThreadCall, ThreadStart, ToThread } from './call-thread.ts';
import { ByteBudget, Turns } from './request-body.ts';

/** A longer text is transferred as bytes, because the main thread would have to copy and encode it. */
const longText = 64 * 1024;
/** Parsing a body of this size takes some milliseconds. */
const largeBytes = 128 * 1024;

/** The thread's priority is this many steps below the main thread's, which serves all other callers. Each step takes a tenth less of a busy processor. */
const stepsBelow: Record<LaneName, number> = { busy: 5, heavy: 10 };
const lowestPriority = 19;

type Handles = Readonly<Record<ServedFunctionName, HostedHandle>>;

/** Answers calls from the main thread on this thread. */
export function serveThread(handles: Handles, log: Log): void {
  const calls = new ThreadCalls(handles, workerData as ThreadStart);
  parentPort?.on('message', (call: ThreadCall) => void calls.serve(call));
  // The thread may be in any state, so the main thread ends all calls and waits until they are settled.
  process.on('uncaughtException', (error) => {
    log.fault('process', error);
    parentPort?.postMessage('fault', []);
  });
}

class ThreadCalls {
  readonly #entries: Record<ServedFunctionName, ReturnType<typeof createHttpEntry>>;
  readonly #start: ThreadStart;
  readonly #budget: ByteBudget;
  readonly #turns = new Turns();

  constructor(handles: Handles, start: ThreadStart) {
    this.#entries = {
      chat: createHttpEntry(handles.chat),
      responses: createHttpEntry(handles.responses),
      messages: createHttpEntry(handles.messages),
      catalog: createHttpEntry(handles.catalog),
    };
    this.#start = start;
    this.#budget = new ByteBudget(start.room);
    // Only Linux has a priority per thread. Elsewhere this would change the whole process.
    if (process.platform === 'linux')
      setPriority(Math.min(lowestPriority, getPriority() + stepsBelow[start.lane]));
  }

  /** Never rejects. */
  async serve({ route, request, body, port }: ThreadCall): Promise<void> {
    const ends = new AbortController();
    const claim = this.#budget.claim();
    let held = body;
    const asked = new Asked(port, () => ends.abort());
    const turn = async (bytes: number): Promise<void> => {
      if (bytes > largeBytes) await this.#turns.next();
    };
    const answer = await this.#entries[route](() => ({
      ...request,
      body: () => {
        const whole = held;
        held = new Uint8Array();
        return whole;
      },
      ends: ends.signal,
      shared: { bodyBytesMax: this.#start.requestBytesMax, room: claim, turn },
    }));
    asked.answerWith(answer);
    await answer.done;
    claim.release();
    asked.say({ done: true });
  }
}

/** Sends an answer as the main thread requests it. */
class Asked {
  readonly #port: MessagePort;
  readonly #end: () => void;
  readonly #closed = Promise.withResolvers<void>();
  #texts: AsyncIterator<string> | undefined;
  #endsHere: RelayResponse['endsHere'];

  constructor(port: MessagePort, end: () => void) {
    this.#port = port;
    this.#end = end;
    port.on('message', (said: ToThread) => this.#receive(said));
  }

  say(what: FromThread, moved: ArrayBuffer[] = []): void {
    this.#port.postMessage(what, moved);
  }

  answerWith({ status, headers, body, cut, closes, endsHere }: RelayResponse): void {
    closes?.(this.#closed.promise);
    void cut?.then(() => this.say({ broken: true }));
    this.#endsHere = endsHere;
    const whole = typeof body === 'string' ? bytesOf(body) : undefined;
    if (typeof body !== 'string') this.#texts = body[Symbol.asyncIterator]();
    this.say({ head: { status, headers }, whole }, whole ? [whole.buffer] : []);
  }

  #receive(said: ToThread): void {
    if (said === 'next') void this.#next();
    else if (said === 'return') void this.#texts?.return?.();
    else if (said === 'closed') this.#closed.resolve();
    else this.#end();
  }

  async #next(): Promise<void> {
    try {
      const { done, value = '' } = (await this.#texts?.next()) ?? { done: true };
      if (done) return this.say({ over: 'read' });
      // This text may be the last.
      await new Promise<void>((resolve) => {
        process.nextTick(resolve);
      });
      const endsHere = this.#endsHere?.() ?? false;
      if (value.length <= longText) return this.say({ text: value, endsHere });
      const text = bytesOf(value);
      this.say({ text, endsHere }, [text.buffer]);
    } catch {
      this.say({ over: 'cut' });
    }
  }
}

/** Copies the bytes into their own memory, so that they can be transferred. */
const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
