import { randomUUID } from 'node:crypto';
import type { Log } from '../host/log.ts';
import { Environment, finishingMs, type EnvironmentEvents } from './environment.ts';
import type { FunctionError, FunctionSettings, Invocation, Responder } from './invocation.ts';

/** One Lambda function: its environments, started on demand up to a maximum, and its queue of invocations. */
export class LocalFunction {
  readonly settings: FunctionSettings;
  readonly #log: Log;
  readonly #environments = new Set<Environment>();
  readonly #queue: Invocation[] = [];
  #started = 0;
  #closed = false;

  constructor(settings: FunctionSettings, log: Log) {
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
      new Environment({ settings: this.settings, serial: this.#started, events, log: this.#log }),
    );
  }
}
