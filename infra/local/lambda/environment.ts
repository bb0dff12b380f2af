import { spawn, type ChildProcess } from 'node:child_process';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { finished } from 'node:stream';
import { logLines, type Log } from '../host/log.ts';
import type { FunctionError, FunctionSettings, Invocation } from './invocation.ts';
import { createRuntimeApi } from './runtime-api.ts';
import { runtimeEnvironment } from './runtime-environment.ts';

const runtimeClient = createRequire(import.meta.url).resolve('aws-lambda-ric');
const shim = path.join(import.meta.dirname, 'ric-shim.cjs');
// Lambda's limit for loading a function is 10 s; a busy laptop needs more.
const initTimeoutMs = 30_000;

/** Time that a handler may run on after its answer before new requests get another environment. */
export const finishingMs = 100;

export interface EnvironmentEvents {
  /** Called when it waits for work: after loading, and after the handler of an invocation has returned. */
  idle(): void;
  /** Called when its process has ended. `initError` is set if it was never idle. */
  dead(environment: Environment, initError?: FunctionError): void;
}

export interface EnvironmentParts {
  settings: FunctionSettings;
  /** Number of this environment among those of its function, from 1. */
  serial: number;
  events: EnvironmentEvents;
  log: Log;
}

/** One execution environment: a process with AWS's runtime client that runs one invocation at a time. */
export class Environment {
  readonly label: string;
  state: 'starting' | 'idle' | 'busy' | 'dead' = 'starting';
  readonly #parts: EnvironmentParts;
  readonly #server: Server;
  #process: ChildProcess | undefined;
  #waiting: ServerResponse | undefined;
  #invocation: Invocation | undefined;
  #answered = false;
  /** Aborts when the function can write nothing more to its streamed answer. */
  #streamOver: AbortController | undefined;
  /** Time at which the last byte of the answer was sent; undefined before. */
  #completeAt: number | undefined;
  #everIdle = false;
  #initError: FunctionError | undefined;
  #timer: NodeJS.Timeout | undefined;
  #killed = false;
  readonly #ended = Promise.withResolvers<void>();

  constructor(parts: EnvironmentParts) {
    this.label = `${parts.settings.name}#${parts.serial}`;
    this.#parts = parts;
    this.#server = createRuntimeApi({
      next: (response) => this.#becomeIdle(response),
      initFailed: (error) => {
        this.#initError = error;
      },
      isRunning: (id) => this.#invocation?.id === id && !this.#answered,
      answered: (_, payload) => {
        this.#take()?.buffered(payload);
        this.#answerEnded();
      },
      failed: (_, error) => {
        this.#take()?.failed(error);
        this.#answerEnded();
      },
      streaming: (_, body: IncomingMessage, contentType) => {
        // `finished` also covers a reset connection, which emits no 'end'.
        finished(body, () => this.#answerEnded());
        this.#streamOver = new AbortController();
        this.#take()?.streaming(body, contentType, this.#streamOver.signal);
      },
    });
    this.#server.listen(0, '127.0.0.1', () => this.#spawn());
    this.#timer = setTimeout(() => this.#timedOut('Init', initTimeoutMs), initTimeoutMs);
  }

  /** True just after the last byte was sent. Most handlers then return, so it is idle soon. */
  get isFinishing(): boolean {
    return this.state === 'busy' && performance.now() - (this.#completeAt ?? -Infinity) < finishingMs;
  }

  /** Runs an invocation; allowed only while idle. */
  run(invocation: Invocation): void {
    const { timeoutMs, arn } = this.#parts.settings;
    this.#invocation = invocation;
    this.#answered = false;
    this.#completeAt = undefined;
    this.state = 'busy';
    this.#timer = setTimeout(() => this.#timedOut('Task', timeoutMs), timeoutMs);
    const headers = {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': invocation.id,
      'lambda-runtime-deadline-ms': String(Date.now() + timeoutMs),
      'lambda-runtime-invoked-function-arn': arn,
    };
    this.#waiting?.writeHead(200, headers).end(invocation.event);
    this.#waiting = undefined;
  }

  /** Kills the process without notice to the function, as Lambda does. Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#killed = true;
    this.#process?.kill('SIGKILL');
    if (this.#process === undefined) this.#die({ errorType: 'Runtime.ExitError', errorMessage: 'closed' });
    await this.#ended.promise;
    this.#server.closeAllConnections();
  }

  #spawn(): void {
    if (this.#killed) return;
    const { settings, log } = this.#parts;
    const { port } = this.#server.address() as AddressInfo;
    const heap = `--max-old-space-size=${Math.floor(settings.memoryMegabytes * 0.9)}`;
    const child = spawn(process.execPath, [heap, '-r', shim, runtimeClient], {
      cwd: settings.folder,
      // The shim ends when its stdin closes, which happens when this process ends.
      stdio: ['pipe', 'pipe', 'pipe'],
      env: runtimeEnvironment(settings, this.label, `127.0.0.1:${port}`),
    });
    this.#process = child;
    log(`environment ${this.label} pid ${child.pid}`);
    for (const stream of [child.stdout, child.stderr])
      logLines(stream, (line) => log(`[${settings.name}] ${line}`));
    child.stdin.on('error', () => {});
    child.on('error', (error) => this.#die({ errorType: 'Runtime.ExitError', errorMessage: error.message }));
    child.on('exit', (code, signal) => {
      if (!this.#killed) log(`environment ${this.label} pid ${child.pid} ended (${signal ?? code})`);
      this.#die({ errorType: 'Runtime.ExitError', errorMessage: `Runtime exited (${signal ?? code})` });
    });
  }

  #becomeIdle(response: ServerResponse): void {
    // After a streaming handler has thrown or has broken its answer off, the request for work may arrive before the end
    // of the answer, which is on another connection. A slow viewer must not hide that end.
    this.#waiting = response;
    if (this.#invocation !== undefined && this.#completeAt === undefined) return this.#streamOver?.abort();
    clearTimeout(this.#timer);
    this.#everIdle = true;
    this.#invocation = undefined;
    this.state = 'idle';
    this.#parts.events.idle();
  }

  #answerEnded(): void {
    this.#completeAt = performance.now();
    if (this.#waiting !== undefined) this.#becomeIdle(this.#waiting);
  }

  #take(): Invocation['responder'] | undefined {
    if (this.#answered) return undefined;
    this.#answered = true;
    return this.#invocation?.responder;
  }

  #timedOut(what: 'Task' | 'Init', timeoutMs: number): void {
    const seconds = (timeoutMs / 1000).toFixed(2);
    const message = `${this.#invocation?.id ?? ''} ${what} timed out after ${seconds} seconds`.trim();
    this.#parts.log(`[${this.#parts.settings.name}] ${message}`);
    const error = { errorType: 'Sandbox.Timedout', errorMessage: message };
    if (this.#invocation === undefined) this.#initError = error;
    else this.#take()?.failed(error);
    void this.kill();
  }

  #die(error: FunctionError): void {
    if (this.state === 'dead') return;
    this.state = 'dead';
    clearTimeout(this.#timer);
    // Open connections stay, so that bytes written before the process ended are still read.
    this.#server.close();
    this.#streamOver?.abort();
    if (this.#invocation !== undefined) this.#take()?.failed(error);
    this.#parts.events.dead(this, this.#everIdle ? undefined : (this.#initError ?? error));
    this.#ended.resolve();
  }
}
