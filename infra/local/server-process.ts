/** The server of `infra/server` as a process of the local stack, started anew when it ends, as container hosts do. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { forwardRequest, ofConnection } from './host/loopback.ts';
import { logLines, type StackLog, StartError } from './host/messages.ts';
import { localRegion } from './host/local-options.ts';
import type { LocalFunction } from './lambda/local-function.ts';
import type { FunctionUrl } from './lambda/function-url.ts';

const entry = path.resolve(import.meta.dirname, '../../dist/server/index.mjs');
/** The same heap as in the example of docs/server.md. */
const heapMegabytes = 900;
const restartAfterMs = 200;

interface ServerProcess {
  /** The port of the process that serves now; of one that starts, once it listens. */
  port: (this: void) => Promise<number>;
  /** Ends it by SIGTERM, and resolves when it is gone. */
  stop(): Promise<void>;
}

/** Resolves when it listens. Its variables are those of a function that answers calls. */
export async function startServerProcess(
  functions: ReadonlyMap<string, Pick<LocalFunction, 'settings'>>,
  log: StackLog,
): Promise<ServerProcess> {
  const environment = buildServerEnvironment(functions);
  let serial = 0;
  let isStopping = false;
  let child: ChildProcess | undefined;
  let listening = Promise.withResolvers<number>();
  const start = (): void => {
    serial += 1;
    const started = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, entry], {
      // The server ends when this channel closes, which happens when this process ends.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: environment,
    });
    child = started;
    const label = `environment server#${serial} pid ${started.pid}`;
    log(label);
    for (const stream of [started.stdout, started.stderr])
      if (stream) logLines(stream, (line) => log(`[server] ${line}`));
    started.once('message', (message) => listening.resolve((message as { port: number }).port));
    started.once('exit', (code, signal) => {
      log(`${label} ended (${signal ?? code})`);
      listening.reject(new StartError(`the server exited (${signal ?? code}) before it was ready`));
      if (isStopping) return;
      listening = Promise.withResolvers<number>();
      listening.promise.catch(() => undefined);
      setTimeout(() => !isStopping && start(), restartAfterMs);
    });
  };
  start();
  await listening.promise;
  return {
    port: () => listening.promise,
    async stop() {
      isStopping = true;
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function buildServerEnvironment(
  functions: ReadonlyMap<string, Pick<LocalFunction, 'settings'>>,
): Record<string, string> {
  const answering = [...functions.values()].find(({ settings }) => settings.name === 'chat');
  // The bounds of a heap that serves one call.
  const { NODE_OPTIONS: _options, ...variables } = answering?.settings.environment ?? {};
  return {
    AWS_REGION: localRegion,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    // Ctrl-C does not wait for answers.
    RELAY_DRAIN_SECONDS: '0',
    ...variables,
    RELAY_LISTEN: '127.0.0.1:0',
  };
}

/**
 * Sends a request of the distribution to the server process, as to a Function URL.
 * @param port of the process, as it is when a request comes
 */
export const createServerUrl =
  (port: () => Promise<number>): FunctionUrl =>
  async (request, { target, headers }) => {
    try {
      const body = await forwardRequest(request, {
        host: '127.0.0.1',
        port: await port(),
        path: target,
        headers,
      });
      const kept = Object.entries(body.headers).filter(([name]) => !ofConnection.test(name));
      return { status: body.statusCode ?? 502, headers: Object.fromEntries(kept), body };
    } catch {
      return {
        status: 502,
        headers: { 'content-type': 'text/html' },
        body: 'The server did not answer.\n',
      };
    }
  };
