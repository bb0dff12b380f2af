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
// Lambda allows a function ten seconds to load; a busy laptop needs more.
const initTimeoutMs = 30_000;

/** How long a handler that has answered may go on before new requests get another environment. */
export const finishingMs = 100;

export interface EnvironmentEvents {
  /** It waits for work: after loading, and after each invocation including all that the handler awaited. */
  idle(): void;
  /** Its process has ended. `initError` is set when it never became idle. */
  dead(environment: Environment, initError?: FunctionError): void;
}

export interface EnvironmentParts {
  settings: FunctionSettings;
  /** Counts the environments of a function, from 1. */
  serial: number;
  events: EnvironmentEvents;
  log: Log;
}

/** One execution environment: a process with AWS's runtime client in it that runs one invocation at a time. */
export class Environment {
  readonly label: string;
  state: 'starting' | 'idle' | 'busy' | 'dead' = 'starting';
  readonly #settings: FunctionSettings;
  readonly #events: EnvironmentEvents;
  readonly #log: Log;
  readonly #server: Server;
  #process: ChildProcess | undefined;
  #waiting: ServerResponse | undefined;
  #invocation: Invocation | undefined;
  #answered = false;
  #answerComplete = false;
  #answeredAt = 0;
  #everIdle = false;
  #initError: FunctionError | undefined;
  #timer: NodeJS.Timeout | undefined;
  #killed = false;
  readonly #ended = Promise.withResolvers<void>();

  constructor({ settings, serial, events, log }: EnvironmentParts) {
    this.label = `${settings.name}#${serial}`;
    this.#settings = settings;
    this.#events = events;
    this.#log = log;
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
        // Also when the runtime's connection is reset: then there is no 'end'.
        finished(body, () => this.#answerEnded());
        this.#take()?.streaming(body, contentType);
      },
    });
    this.#server.listen(0, '127.0.0.1', () => this.#spawn());
    this.#timer = setTimeout(() => this.#timedOut('Init'), initTimeoutMs);
  }

  /** It has just sent its last byte. Most handlers end with that, so it will be idle at once. */
  get isFinishing(): boolean {
    return (
      this.state === 'busy' && this.#answerComplete && performance.now() - this.#answeredAt < finishingMs
    );
  }

  /** Only while idle. */
  run(invocation: Invocation): void {
    const response = this.#waiting;
    this.#waiting = undefined;
    this.#invocation = invocation;
    this.#answered = false;
    this.#answerComplete = false;
    this.state = 'busy';
    this.#timer = setTimeout(() => this.#timedOut('Task'), this.#settings.timeoutMs);
    response?.writeHead(200, {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': invocation.id,
      'lambda-runtime-deadline-ms': String(Date.now() + this.#settings.timeoutMs),
      'lambda-runtime-invoked-function-arn': this.#settings.arn,
    });
    response?.end(invocation.event);
  }

  /** Kills the process as Lambda does, without notice to the function. Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#killed = true;
    this.#process?.kill('SIGKILL');
    if (this.#process === undefined) this.#die({ errorType: 'Runtime.ExitError', errorMessage: 'closed' });
    await this.#ended.promise;
    this.#server.closeAllConnections();
  }

  #spawn(): void {
    if (this.#killed) return;
    const { port } = this.#server.address() as AddressInfo;
    const heap = `--max-old-space-size=${Math.floor(this.#settings.memoryMegabytes * 0.9)}`;
    const child = spawn(process.execPath, [heap, '-r', shim, runtimeClient], {
      cwd: this.#settings.folder,
      // An open stdin tells the shim that this process still lives.
      stdio: ['pipe', 'pipe', 'pipe'],
      env: runtimeEnvironment(this.#settings, this.label, `127.0.0.1:${port}`),
    });
    this.#process = child;
    this.#log(`environment ${this.label} pid ${child.pid}`);
    for (const stream of [child.stdout, child.stderr]) {
      const lines = logLines(this.#log, `[${this.#settings.name}]`);
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => lines.push(text))
        .on('end', () => lines.end());
    }
    child.stdin.on('error', () => {});
    child.on('error', (error) => this.#die({ errorType: 'Runtime.ExitError', errorMessage: error.message }));
    child.on('exit', (code, signal) => {
      if (!this.#killed) this.#log(`environment ${this.label} pid ${child.pid} ended (${signal ?? code})`);
      this.#die({ errorType: 'Runtime.ExitError', errorMessage: `Runtime exited (${signal ?? code})` });
    });
  }

  #becomeIdle(response: ServerResponse): void {
    // A streaming handler that threw asks for work on one connection while its answer is on the way on another.
    this.#waiting = response;
    if (this.#invocation !== undefined && !this.#answerComplete) return;
    clearTimeout(this.#timer);
    this.#everIdle = true;
    this.#invocation = undefined;
    this.state = 'idle';
    this.#events.idle();
  }

  #answerEnded(): void {
    this.#answerComplete = true;
    this.#answeredAt = performance.now();
    if (this.#waiting !== undefined) this.#becomeIdle(this.#waiting);
  }

  #take(): Invocation['responder'] | undefined {
    if (this.#answered) return undefined;
    this.#answered = true;
    return this.#invocation?.responder;
  }

  #timedOut(what: 'Task' | 'Init'): void {
    const seconds = ((what === 'Task' ? this.#settings.timeoutMs : initTimeoutMs) / 1000).toFixed(2);
    const message = `${this.#invocation?.id ?? ''} ${what} timed out after ${seconds} seconds`.trim();
    this.#log(`[${this.#settings.name}] ${message}`);
    if (this.#invocation === undefined)
      this.#initError = { errorType: 'Sandbox.Timedout', errorMessage: message };
    else this.#take()?.failed({ errorType: 'Sandbox.Timedout', errorMessage: message });
    void this.kill();
  }

  #die(error: FunctionError): void {
    if (this.state === 'dead') return;
    this.state = 'dead';
    clearTimeout(this.#timer);
    // Connections stay: what the process wrote before it died is still to be read.
    this.#server.close();
    if (this.#invocation !== undefined) this.#take()?.failed(error);
    this.#events.dead(this, this.#everIdle ? undefined : (this.#initError ?? error));
    this.#ended.resolve();
  }
}
