import { randomUUID } from 'node:crypto';
import type { StackLog } from '../host/messages.ts';
import {
  LambdaEnvironment,
  finishingMs,
  type EnvironmentEvents,
  type FunctionError,
  type FunctionSettings,
  type Invocation,
  type Responder,
} from './environment.ts';
import { closeServer, listenOnLoopback, serverForPrograms } from '../host/loopback.ts';

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
  invoke(event: unknown, responder: Responder, id: string = randomUUID()): void {
    if (this.#closed)
      responder.failed({ errorType: 'ServiceException', errorMessage: 'the stack is closing' });
    else this.#queue.push({ id, event: JSON.stringify(event), responder });
    this.#pump();
  }

  /**
   * Invokes the function and resolves with the parsed answer. Rejects with an Error that has the fields of
   * FunctionError.
   */
  call(event: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const fail = (error: FunctionError) =>
        reject(
          Object.assign(new Error(`${this.settings.name}: ${error.errorType}: ${error.errorMessage}`), error),
        );
      this.invoke(event, {
        failed: fail,
        buffered: (payload) => resolve(JSON.parse(payload.toString())),
        streaming: (body) => {
          body.resume();
          fail({ errorType: 'InvalidResponse', errorMessage: 'a streamed answer to an event' });
        },
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { responder } of this.#queue.splice(0))
      responder.failed({ errorType: 'ServiceException', errorMessage: 'the stack is closing' });
    await Promise.all([...this.#environments].map((environment) => environment.kill()));
  }

  #pump(): void {
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
    if (finishing > 0 && this.#queue.length > 0) setTimeout(() => this.#pump(), finishingMs);
  }

  #start(): void {
    this.#started += 1;
    const events: EnvironmentEvents = {
      idle: () => this.#pump(),
      dead: (dead, initError) => {
        this.#environments.delete(dead);
        // As on AWS, each failed attempt to load the code fails one request.
        if (initError !== undefined) this.#queue.shift()?.responder.failed(initError);
        this.#pump();
      },
    };
    this.#environments.add(
      new LambdaEnvironment({ settings: this.settings, serial: this.#started, events, log: this.#log }),
    );
  }
}

// Emulates Lambda's Invoke for events: an event is taken at once, and its function runs without its sender.

/** Lambda's limit for events. */
const eventBytesMax = 1024 * 1024;
const pathPattern = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;

interface InvokeApi {
  endpoint: string;
  /** The functions by name; before it is called there are none. */
  open(functions: ReadonlyMap<string, LocalFunction>): void;
  close(): Promise<void>;
}

export async function startInvokeApi(log: StackLog): Promise<InvokeApi> {
  let functions: ReadonlyMap<string, LocalFunction> = new Map();
  const server = serverForPrograms((request, response) => {
    const refuse = (status: number, type: string): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type })
        .end(JSON.stringify({ Type: 'User', Message: type }));
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => void pieces.push(piece));
    request.on('error', () => {});
    request.once('end', () => {
      const name = pathPattern.exec(request.url ?? '')?.[1];
      const target = functions.get(decodeURIComponent(name ?? ''));
      const body = Buffer.concat(pieces);
      if (name === undefined || request.method !== 'POST') return refuse(404, 'UnknownOperationException');
      if (!target) return refuse(404, 'ResourceNotFoundException');
      if (request.headers['x-amz-invocation-type'] !== 'Event')
        return refuse(400, 'InvalidParameterValueException');
      if (!request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 '))
        return refuse(403, 'MissingAuthenticationTokenException');
      if (body.length > eventBytesMax) return refuse(413, 'RequestTooLargeException');
      let event: unknown;
      try {
        event = JSON.parse(body.toString());
      } catch {
        return refuse(400, 'InvalidRequestContentException');
      }
      target.call(event).catch((error: unknown) => log(`event lost: ${String(error)}`));
      response.writeHead(202).end();
    });
  });
  const port = await listenOnLoopback(server, 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    open: (given) => void (functions = given),
    close: () => closeServer(server),
  };
}
