/** Stands in for Lambda: queues invocations of a function and runs them in environments. */
import { randomUUID } from 'node:crypto';
import type { StackLog } from '../host/messages.ts';
import {
  FunctionError,
  LambdaEnvironment,
  finishingMs,
  type Answered,
  type EnvironmentEvents,
  type FunctionSettings,
  type Invocation,
} from './environment.ts';
import { type Listening, listenOnFreePort, readBody, createProgramServer } from '../host/loopback.ts';

/** One Lambda function: its environments, started on demand up to a maximum, and its queue of invocations. */
export class LocalFunction {
  readonly settings: FunctionSettings;
  readonly #log: StackLog;
  readonly #environments = new Set<LambdaEnvironment>();
  readonly #queue: Invocation[] = [];
  #started = 0;
  #closed = false;

  constructor(settings: FunctionSettings, log: StackLog) {
    this.settings = settings;
    this.#log = log;
  }

  /** Runs the function with the event as soon as an environment is free. */
  invoke(event: unknown, id: string = randomUUID()): Promise<Answered> {
    const invocation = { ...Promise.withResolvers<Answered>(), id, event: JSON.stringify(event) };
    if (this.#closed) invocation.reject(createClosingError());
    else this.#queue.push(invocation);
    this.#dispatchWaiting();
    return invocation.promise;
  }

  /** Invokes the function and resolves with the parsed answer. Its error has the function's name in its message. */
  async call(event: unknown): Promise<unknown> {
    try {
      const answered = await this.invoke(event);
      if ('payload' in answered) return JSON.parse(answered.payload.toString());
      answered.body.resume();
      throw new FunctionError('InvalidResponse', 'a streamed answer to an event');
    } catch (error) {
      const { errorType, message } = error as FunctionError;
      throw new FunctionError(errorType, `${this.settings.name}: ${errorType}: ${message}`);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#queue.splice(0)) reject(createClosingError());
    await Promise.all([...this.#environments].map((environment) => environment.kill()));
  }

  #dispatchWaiting(): void {
    if (this.#closed) return;
    const environments = [...this.#environments];
    // Prefers the environment that was started last.
    for (const environment of environments.toReversed()) {
      if (environment.state !== 'idle') continue;
      const next = this.#queue.shift();
      if (next === undefined) return;
      environment.run(next);
    }
    const finishing = environments.filter(({ isFinishing }) => isFinishing).length;
    let coming = finishing + environments.filter(({ state }) => state === 'starting').length;
    while (coming < this.#queue.length && this.#environments.size < this.settings.environmentsMax) {
      this.#start();
      coming += 1;
    }
    if (finishing > 0 && this.#queue.length > 0) setTimeout(() => this.#dispatchWaiting(), finishingMs);
  }

  #start(): void {
    this.#started += 1;
    const events: EnvironmentEvents = {
      idle: () => this.#dispatchWaiting(),
      dead: (dead, initError) => {
        this.#environments.delete(dead);
        // As on AWS, each failed attempt to load the code fails one request.
        if (initError !== undefined) this.#queue.shift()?.reject(initError);
        this.#dispatchWaiting();
      },
    };
    this.#environments.add(
      new LambdaEnvironment({ settings: this.settings, serial: this.#started, events, log: this.#log }),
    );
  }
}

const createClosingError = (): FunctionError => new FunctionError('ServiceException', 'the stack is closing');

// Emulates Lambda's Invoke for events: an event is taken at once, and its function runs without its sender.

/** Lambda's limit for events. */
const eventBytesMax = 1024 * 1024;
const pathPattern = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;

interface InvokeApi extends Listening {
  /** The functions by name; before it is called there are none. */
  open(functions: ReadonlyMap<string, LocalFunction>): void;
}

export async function startInvokeApi(log: StackLog): Promise<InvokeApi> {
  let functions: ReadonlyMap<string, LocalFunction> = new Map();
  const server = createProgramServer(async (request, response) => {
    const refuse = (status: number, type: string): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type })
        .end(JSON.stringify({ Type: 'User', Message: type }));
    const body = await readBody(request, eventBytesMax);
    const name = pathPattern.exec(request.url ?? '')?.[1];
    const target = functions.get(decodeURIComponent(name ?? ''));
    if (name === undefined || request.method !== 'POST') return refuse(404, 'UnknownOperationException');
    if (!target) return refuse(404, 'ResourceNotFoundException');
    if (request.headers['x-amz-invocation-type'] !== 'Event')
      return refuse(400, 'InvalidParameterValueException');
    if (!request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 '))
      return refuse(403, 'MissingAuthenticationTokenException');
    if (!body) return refuse(413, 'RequestTooLargeException');
    target.call(JSON.parse(body.toString())).catch((error: unknown) => log(`event lost: ${String(error)}`));
    return void response.writeHead(202).end();
  });
  return { ...(await listenOnFreePort(server)), open: (given) => void (functions = given) };
}
