/** The side of the thread: answers the calls that the main thread hands over, one in each turn of the event loop while they are read. */
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { createHttpEntry } from '../../shared/adapters/entry/http-entry.ts';
import type { HostedHandle, RelayResponse } from '../../shared/relay/http/http.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import type { ServedFunctionName } from '../stack/constructs/function-descriptions.ts';
import type { FromThread, LaneName, ThreadCall, ThreadStart, ToThread } from './call-thread.ts';
import { ByteBudget, Turns } from './request-body.ts';

/** A text of more is moved as bytes: the main thread would copy and encode it. */
const longText = 64 * 1024;
/** A body of this size takes some milliseconds to parse. */
const largeBytes = 128 * 1024;

/** Steps of priority below the main thread's, which comes first: it has all other callers. Each step is a tenth less of a busy processor. */
const stepsBelow: Record<LaneName, number> = { busy: 5, heavy: 10 };
const lowestPriority = 19;

type Handles = Readonly<Record<ServedFunctionName, HostedHandle>>;

/** Makes this thread the one that answers what the main thread hands over. */
export function serveThread(handles: Handles, log: Log): void {
  const calls = new ThreadCalls(handles, workerData as ThreadStart);
  parentPort?.on('message', (call: ThreadCall) => void calls.serve(call));
  // The thread may be in any state: the main one ends all calls, and waits for their bills.
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
    // Linux knows a priority for each thread; elsewhere it would be the whole process's.
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

/** An answer as the main thread asks for it. */
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
      // The end may have come with this text.
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

/** In memory of their own, so that they can be moved. */
const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
