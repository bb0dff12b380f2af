/**
 * The server: all endpoints in one process, many requests at once. docs/server.md says how to run it. Its threads run the same
 * file with the same handles.
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

// Uses the SDK's credential chain: variables, a web identity, a container's endpoint, an instance's role, files. It renews them
// before they expire. Only the server's bundle has this chain, because Lambda passes credentials as variables.

function createDefaultCredentials() {
  const { config } = new DynamoDBClient({});
  return createCredentialSource((options) => config.credentials(options));
}

/** V8's default is four times as much per thread. Flags of the process limit the old generation. */
const resourceLimits = { maxYoungGenerationSizeMb: 48 };
/** Each request reads and writes a few items, possibly all at once. */
const connectionsPerRequest = 2;

/** Creates what every thread of the process needs. */
function compose() {
  // The log's reader may disappear, but running calls are still billed.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const variables = collectNumberedSecrets(process.env);
  const options = readServerOptions(variables);
  // Otherwise each process would encrypt the state of turns with its own key, and no other could decrypt it.
  if (!variables['SEAL_KEYS']) throw new Error('SEAL_KEYS is missing: see docs/server.md');
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
      // The log lines of the threads arrive before they end.
      await Promise.all(Object.values(workers).map((worker) => worker.terminate()));
      log.event('server_ended', { unsettled });
      process.exit(unsettled > 0 ? 1 : code);
    })();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(0, options.drainMs));
  // The process may be in any state, so it starts no call and settles running ones at once.
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
  // Sends the port to a parent with a channel, such as the local stack, and ends with it.
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
