/**
 * The server: all endpoints in one process, many requests at once. docs/server.md says how to run it. The same file is what its
 * threads run, with the same handles.
 */
import { isMainThread, Worker } from 'node:worker_threads';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createCredentialSource } from '../../shared/adapters/aws/credentials.ts';
import { trapRejections } from '../../shared/adapters/entry/lambda-handlers.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import {
  createJsonLog,
  createRequestMetrics,
  createServerMetrics,
} from '../../shared/adapters/telemetry/log.ts';
import { chatEndpoint } from '../../shared/endpoints/chat/chat-endpoint.ts';
import { embeddingsEndpoint } from '../../shared/endpoints/embeddings/embeddings-endpoint.ts';
import { messagesEndpoint } from '../../shared/endpoints/messages/messages-endpoint.ts';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import { composeAnsweringHandles } from '../../functions/compose/answering.ts';
import { composePublicHandle } from '../../functions/compose/public.ts';
import { CallThread, type LaneName, type ThreadStart } from './call-thread.ts';
import { createByteBudget } from './request-body.ts';
import { readServerOptions, collectNumberedSecrets } from './server-options.ts';
import { serveThread } from './thread-calls.ts';
import { createRouting, WebServer } from './web-server.ts';

// Credentials from wherever the SDK finds them: variables, a web identity, a container's endpoint, an instance's role, files.
// They are renewed before they expire. Only the server's bundle holds this chain; Lambda gives credentials as variables.

function createDefaultCredentials() {
  const { config } = new DynamoDBClient({});
  return createCredentialSource((options) => config.credentials(options));
}

/** V8's own is four times as much, for each thread. The old generation has the bound of the process's flags. */
const resourceLimits = { maxYoungGenerationSizeMb: 48 };
/** Each request reads and writes a few items, and all of them may do so at once. */
const connectionsPerRequest = 2;

/** The parts that every thread of the process needs. */
function compose() {
  // The reader of the log may go: calls that run are billed all the same.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const variables = collectNumberedSecrets(process.env);
  const options = readServerOptions(variables);
  // Without it each process would seal the state of turns with a key of its own, which no other opens.
  if (!variables['SEAL_KEYS']) throw new Error('SEAL_KEYS is missing; docs/server.md says where it is');
  const connectionsMax = connectionsPerRequest * options.requestsMax;
  const environment = readEnvironment(variables, { credentials: createDefaultCredentials(), connectionsMax });
  const log = createJsonLog(environment.version, createRequestMetrics(environment.stack));
  trapRejections(log);
  const answering = composeAnsweringHandles(environment);
  const handles = {
    chat: answering(chatEndpoint, embeddingsEndpoint),
    responses: answering(responsesEndpoint),
    messages: answering(messagesEndpoint),
    catalog: composePublicHandle(environment),
  };
  return { options, environment, log, handles };
}

function startThread(): void {
  const { handles, log } = compose();
  serveThread(handles, log);
}

async function start(): Promise<void> {
  const { options, environment, log, handles } = compose();
  const { publicHost, stack } = environment;
  const room = createByteBudget(options.bodyBytesMax);
  const workerOf = (lane: LaneName): Worker => {
    const { requestBytesMax } = options;
    const workerData: ThreadStart = { lane, room, requestBytesMax };
    return new Worker(new URL(import.meta.url), { workerData, resourceLimits });
  };
  const workers = { busy: workerOf('busy'), heavy: workerOf('heavy') };
  const threads = { busy: new CallThread(workers.busy), heavy: new CallThread(workers.heavy) };
  const server = new WebServer({ route: createRouting(handles), options, room, threads, publicHost });
  let ending: Promise<void> | undefined;
  const end = (code: number, drainMs: number): void => {
    ending ??= (async () => {
      log.event('server_ending', { requests: server.count });
      const unsettled = await server.end(drainMs);
      // Their log lines arrive before their end.
      await Promise.all(Object.values(workers).map((worker) => worker.terminate()));
      log.event('server_ended', { unsettled });
      process.exit(unsettled > 0 ? 1 : code);
    })();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(0, options.drainMs));
  // The process may be in any state: no call is begun in it, and those that run are settled at once.
  process.on('uncaughtException', (error) => {
    log.fault('process', error);
    end(1, 0);
  });
  for (const worker of Object.values(workers))
    for (const event of ['message', 'error', 'exit']) worker.once(event, () => end(1, 0));
  const { address, port } = await server.listen(options);
  log.event('server_started', { address, port });
  const { inFlight } = createServerMetrics(stack);
  if (options.countMs !== undefined) setInterval(() => inFlight(server.count), options.countMs).unref();
  // A parent that has opened a channel, such as the local stack, is sent the port, and its end is ours.
  process.send?.({ port });
  process.once('disconnect', () => end(0, 0));
}

try {
  if (isMainThread) await start();
  else startThread();
} catch (error) {
  console.error(`the server cannot start: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
