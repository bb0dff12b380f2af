/** One execution environment of a function: a process under AWS's runtime client, with its time-outs and its state. */
import { spawn, type ChildProcess } from 'node:child_process';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { finished } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { logLines, type StackLog } from '../host/messages.ts';
import { createProgramServer } from '../host/loopback.ts';
import { localRegion } from '../host/local-options.ts';

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
  dead(environment: LambdaEnvironment, initError?: FunctionError): void;
}

interface EnvironmentParts {
  settings: FunctionSettings;
  /** Number of this environment among those of its function, from 1. */
  serial: number;
  events: EnvironmentEvents;
  log: StackLog;
}

/** One execution environment: a process with AWS's runtime client that runs one invocation at a time. */
export class LambdaEnvironment {
  readonly label: string;
  state: 'starting' | 'idle' | 'busy' | 'dead' = 'starting';
  readonly #parts: EnvironmentParts;
  readonly #server: Server;
  #process: ChildProcess | undefined;
  #waiting: ServerResponse | undefined;
  #invocation: Invocation | undefined;
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
    this.#server = createProgramServer((request, response) => this.#route(request, response));
    // An invocation and an idle environment may both send nothing for minutes.
    this.#server.requestTimeout = 0;
    this.#server.headersTimeout = 0;
    this.#server.keepAliveTimeout = 0;
    this.#server.listen(0, '127.0.0.1', () => this.#spawn());
    this.#timer = setTimeout(() => this.#failByTimeout('Init', initTimeoutMs), initTimeoutMs);
  }

  /** True just after the last byte was sent. Most handlers then return, so it is idle soon. */
  get isFinishing(): boolean {
    return this.state === 'busy' && performance.now() - (this.#completeAt ?? -Infinity) < finishingMs;
  }

  /** Runs an invocation; allowed only while idle. */
  run(invocation: Invocation): void {
    const { timeoutMs, arn } = this.#parts.settings;
    this.#invocation = invocation;
    this.#completeAt = undefined;
    this.state = 'busy';
    this.#timer = setTimeout(() => this.#failByTimeout('Task', timeoutMs), timeoutMs);
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
    if (this.#process === undefined) this.#stopDead('closed');
    await this.#ended.promise;
    this.#server.closeAllConnections();
  }

  #spawn(): void {
    if (this.#killed) return;
    const { settings, log } = this.#parts;
    const { port } = this.#server.address() as AddressInfo;
    // An option here would take precedence over the function's own.
    const isSet = settings.environment['NODE_OPTIONS']?.includes('--max-old-space-size') ?? false;
    const heap = isSet ? [] : [`--max-old-space-size=${Math.floor(settings.memoryMegabytes * 0.9)}`];
    const child = spawn(process.execPath, [...heap, '-r', shim, runtimeClient], {
      cwd: settings.folder,
      // The shim ends when its stdin closes, which happens when this process ends.
      stdio: ['pipe', 'pipe', 'pipe'],
      env: buildRuntimeEnvironment(settings, this.label, `127.0.0.1:${port}`),
    });
    this.#process = child;
    log(`environment ${this.label} pid ${child.pid}`);
    for (const stream of [child.stdout, child.stderr])
      logLines(stream, (line) => log(`[${settings.name}] ${line}`));
    child.stdin.on('error', () => {});
    child.on('error', (error) => this.#stopDead(error.message));
    child.on('exit', (code, signal) => {
      if (!this.#killed) log(`environment ${this.label} pid ${child.pid} ended (${signal ?? code})`);
      this.#stopDead(`Runtime exited (${signal ?? code})`);
    });
  }

  /** AWS's Lambda Runtime API (version 2018-06-01). */
  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    const path = url.startsWith(prefix) ? url.slice(prefix.length) : '';
    // The client is free; work is sent as this response.
    if (method === 'GET' && path === 'invocation/next') return this.#markIdle(response);
    if (path === 'init/error') {
      this.#initError = parseError(await buffer(request));
      return answer(response, 202, accepted);
    }
    const [, id = '', outcome] = /^invocation\/([^/]+)\/(response|error)$/.exec(path) ?? [];
    const invocation = this.#invocation;
    if (outcome === undefined || invocation?.id !== decodeURIComponent(id)) {
      request.resume();
      return answer(response, 400, '{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}');
    }
    if (outcome === 'response' && headers['lambda-runtime-function-response-mode'] === 'streaming') {
      request.once('end', () => answer(response, 202, accepted));
      // `finished` also covers a reset connection, which emits no 'end'.
      finished(request, () => this.#answerEnded());
      this.#streamOver = new AbortController();
      const contentType = headers['content-type'] ?? 'application/octet-stream';
      return invocation.resolve({ body: request, contentType, over: this.#streamOver.signal });
    }
    const payload = await buffer(request);
    if (outcome === 'error') invocation.reject(parseError(payload));
    else invocation.resolve({ payload });
    this.#answerEnded();
    answer(response, 202, accepted);
  }

  #markIdle(response: ServerResponse): void {
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
    if (this.#waiting !== undefined) this.#markIdle(this.#waiting);
  }

  #failByTimeout(what: 'Task' | 'Init', timeoutMs: number): void {
    const seconds = (timeoutMs / 1000).toFixed(2);
    const message = `${this.#invocation?.id ?? ''} ${what} timed out after ${seconds} seconds`.trim();
    this.#parts.log(`[${this.#parts.settings.name}] ${message}`);
    const error = new FunctionError('Sandbox.Timedout', message);
    if (this.#invocation === undefined) this.#initError = error;
    else this.#invocation.reject(error);
    void this.kill();
  }

  #stopDead(message: string): void {
    if (this.state === 'dead') return;
    const error = new FunctionError('Runtime.ExitError', message);
    this.state = 'dead';
    clearTimeout(this.#timer);
    // Open connections stay, so that bytes written before the process ended are still read.
    this.#server.close();
    this.#streamOver?.abort();
    this.#invocation?.reject(error);
    this.#parts.events.dead(this, this.#everIdle ? undefined : (this.#initError ?? error));
    this.#ended.resolve();
  }
}

const prefix = '/2018-06-01/runtime/';
const accepted = '{"status":"OK"}';

function answer(response: ServerResponse, status: number, json: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(json);
}

function parseError(body: Buffer): FunctionError {
  try {
    const { errorType, errorMessage } = JSON.parse(body.toString()) as Record<string, string | undefined>;
    return new FunctionError(errorType ?? 'Error', errorMessage ?? '');
  } catch {
    return new FunctionError('Error', body.toString());
  }
}

/**
 * The variables that Lambda sets. `settings.environment` overrides those above it; those below override it.
 */
function buildRuntimeEnvironment(
  settings: FunctionSettings,
  label: string,
  runtimeApi: string,
): Record<string, string> {
  return {
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
    AWS_REGION: localRegion,
    AWS_DEFAULT_REGION: localRegion,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    ...settings.environment,
    AWS_LAMBDA_FUNCTION_NAME: settings.name,
    AWS_LAMBDA_FUNCTION_VERSION: settings.version ?? '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(settings.memoryMegabytes),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${settings.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: label,
    AWS_LAMBDA_RUNTIME_API: runtimeApi,
    LAMBDA_TASK_ROOT: settings.folder,
    _HANDLER: settings.handler,
  };
}

/** The error of a failed invocation. */
export class FunctionError extends Error {
  readonly errorType: string;

  constructor(errorType: string, message: string) {
    super(message);
    this.errorType = errorType;
  }
}

/**
 * A streamed answer that has begun. The body ends, or emits an error when the function or the end of its process breaks the
 * connection. Trailers describe a failure after the start. The function waits while the body is not read, until `over`
 * aborts: then nothing more is written, and what is left must be read at once.
 */
export interface StreamedAnswer {
  body: IncomingMessage;
  contentType: string;
  over: AbortSignal;
}

/** A function's answer: one JSON payload, or a stream. */
export type Answered = { payload: Buffer } | StreamedAnswer;

/** Rejects with a FunctionError when the function failed before it answered. What comes after that counts no more. */
export interface Invocation extends PromiseWithResolvers<Answered> {
  id: string;
  /** JSON text of the event. */
  event: string;
}

export interface FunctionSettings {
  /** Short name for log lines: `chat`. */
  name: string;
  arn: string;
  /** Number of the version that its environments run. Default: `$LATEST`. */
  version?: string;
  /** Folder that contains the handler's file. */
  folder: string;
  handler: string;
  timeoutMs: number;
  memoryMegabytes: number;
  environment: Record<string, string>;
  /** Requests are queued when this many environments are busy. */
  environmentsMax: number;
}
