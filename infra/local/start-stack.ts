/**
 * Starts the synthesized template on this machine: tables, functions, streams, schedules and the one port for
 * clients.
 */
import { startVendors } from './vendors/vendors.ts';
import {
  type Emulator,
  startEmulator,
  claimDataFolder,
  createStreamCalls,
  createTableCalls,
} from './host/emulator.ts';
import { openCheckpoints, startMapping, type Mapping } from './event-source-mapping.ts';
import { startSchedules, buildMappings, buildSchedules } from './template/build-events.ts';
import {
  readBehaviours,
  type DistributionConfig,
  createFrontDoor,
  distributionOf,
  send,
} from './distribution.ts';
import {
  collectRawHeaders,
  idleTimeoutMs,
  readRestApi,
  createRestApiUrl,
  answerTimeout,
} from './rest-api.ts';
import { claimPorts, createTablesPort } from './host/loopback.ts';
import { type StackLog, StartError, type Started } from './host/messages.ts';
import { writeRunning } from '../ops/session/running-stack.ts';
import { type LocalFunction, startInvokeApi } from './lambda/local-function.ts';
import type { LocalOptions } from './host/local-options.ts';
import { waitForDemoGrant, readOrCreateDemoKey, realChannelRow, seedDemo, seedRows } from './seed.ts';
import { createTables } from './template/build-tables.ts';
import { buildFunctions, buildFunctionUrls } from './template/build-functions.ts';
import {
  readTemplate,
  resourcesOf,
  createReferences,
  nameRestApiHost,
  type LocalReferences,
  type Template,
} from './template/template.ts';
import { buildConsoleVariables, startLocalIssuer } from './console.ts';
import { MarksLost, publishedTables } from '../../shared/relay/ports/config-store.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import { keepLines, createKeptLines, publishAddresses, startLogsApi } from './log.ts';
import { startServerProcess, createServerUrl } from './server-process.ts';

const localStackName = 'relay';

interface StackSettings extends Omit<LocalOptions, 'console' | 'consolePort' | 'log'> {
  /** Maximum number of processes per function that has a URL. */
  environmentsMax: number;
  /** Called at the beginning of each startup step, with its description. */
  onStep?: (doing: string) => void;
  /** Runs something else instead of a function, such as another version. Default: the function of the template. */
  inPlaceOf?: (live: LocalFunction) => LocalFunction;
  /** For a `dynamodbEndpoint` whose emulator the caller started. */
  newestRecord?: Emulator['newestRecord'];
}

export interface RunningStack extends Started {
  /** Resolves with the reason when the DynamoDB emulator stops unexpectedly. */
  emulatorEnded: Promise<string>;
  runSchedules(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Runs the synthesized template. On an error that the caller can fix, stops everything and throws StartError.
 */
export async function startStack(settings: StackSettings, shown: StackLog): Promise<RunningStack> {
  await using started = new AsyncDisposableStack();
  const { onStep = () => {} } = settings;
  onStep('starting the tables');
  const template = readTemplate(settings.templateFolder, localStackName);
  const references = createReferences(template);

  const frontDoor = createFrontDoor();
  started.defer(() => frontDoor.close());
  // With an endpoint the tables are another program's.
  const tables = settings.dynamodbEndpoint === undefined ? createTablesPort() : undefined;
  if (tables) started.defer(() => tables.close());
  const [port = 0, tablesPort] = await claimPorts([
    ['PORT', settings.port, frontDoor],
    ...(tables ? [['DYNAMODB_PORT', settings.dynamodbPort, tables] as const] : []),
  ]);
  started.defer(claimDataFolder(settings.dataFolder));
  const kept = started.adopt(createKeptLines(settings.dataFolder, { warn: shown }), (lines) => lines.close());
  const log = keepLines(kept, shown);
  const demo = settings.seed === 'demo';
  const [emulator, vendors] = await Promise.all([
    startEmulator(settings).then((emulator) => started.adopt(emulator, () => emulator.stop())),
    demo ? startVendors().then((servers) => started.adopt(servers, () => servers.close())) : undefined,
  ]);
  onStep('creating tables');
  tables?.open(emulator.endpoint);
  const callAws = createTableCalls(emulator.endpoint);
  await createTables(callAws, references);
  const logsApi = started.adopt(await startLogsApi(localStackName, kept), (api) => api.close());
  await publishAddresses(callAws, localStackName, { log: logsApi.endpoint, port });
  const invokeApi = started.adopt(await startInvokeApi(log), (api) => api.close());
  const { functionEnvironment: environment, environmentsMax, secretsEndpoint } = settings;
  const endpoints = { dynamodb: emulator.endpoint, lambda: invokeApi.endpoint, secrets: secretsEndpoint };
  const issuer = hasConsole(template)
    ? started.adopt(await startLocalIssuer(), (running) => running.close())
    : undefined;
  const localEnvironment = {
    ...buildLocalVariables(port, endpoints),
    ...(issuer && buildConsoleVariables(issuer, environment)),
  };
  const { inPlaceOf = (live) => live } = settings;
  const live = buildFunctions(references, { environment, localEnvironment, environmentsMax }, log);
  const functions = new Map([...live].map(([id, target]) => [id, inPlaceOf(target)]));
  invokeApi.open(new Map([...functions].map(([id, target]) => [references.physicalName(id), target])));
  started.defer(async () => {
    await Promise.all([...functions.values()].map((target) => target.close()));
  });
  onStep('writing demo rows');
  const key = vendors && readOrCreateDemoKey(settings.dataFolder);
  if (vendors && key !== undefined) await seedDemo(callAws, (name) => vendors.url(name), key);
  if (settings.upstreamKey) await seedRows(callAws, [realChannelRow]);
  const { newestRecord = emulator.newestRecord } = settings;
  const streams = {
    callAws: createStreamCalls(emulator.endpoint),
    checkpoints: openCheckpoints(settings.dataFolder),
    log,
    newestRecord,
  };
  for (const mapping of buildMappings(references, functions)) {
    const lastCoveredRecord = findLastPublished(mapping, newestRecord);
    started.defer(await startMapping({ ...mapping, lastCoveredRecord }, streams));
  }
  onStep('publishing the configuration');
  await publishConfiguration(functions, log);
  const schedules = started.adopt(startSchedules(buildSchedules(references, functions), log), (running) =>
    running.stop(),
  );
  onStep('waiting for the first top-up');
  if (key !== undefined) await waitForDemoGrant(callAws);
  const api = readRestApi(references, functions);
  const apiUrl = api && createRestApiUrl(api);
  const hasServer = settings.compute === 'server';
  if (api && hasServer) throw new StartError('RELAY_COMPUTE=server does not support API Gateway');
  if (hasServer) onStep('starting the server');
  const server = hasServer
    ? started.adopt(await startServerProcess(functions, log), (process) => process.stop())
    : undefined;
  const urls = buildFunctionUrls(template, functions, server && createServerUrl(server.port));
  const [distribution] = resourcesOf(template, 'AWS::CloudFront::Distribution');
  if (api && apiUrl && distribution === undefined)
    frontDoor.open((request, response) => {
      const answering = apiUrl(request, { target: request.url ?? '/', headers: collectRawHeaders(request) });
      void send(request, response, { answering, readTimeoutMs: idleTimeoutMs, timedOut: answerTimeout(api) });
    });
  else {
    if (api && apiUrl) urls.set(nameRestApiHost(api.id), apiUrl);
    frontDoor.open(distributionOf(readBehaviours(readDistributionConfig(references)), urls));
  }

  // Registered a second time because disposal runs in reverse: the front door closes first, so that no
  // request reaches a half-closed stack.
  started.defer(() => frontDoor.close());
  const dynamodbEndpoint = tables ? `http://127.0.0.1:${tablesPort}` : emulator.endpoint;
  started.defer(writeRunning(settings.dataFolder, dynamodbEndpoint));
  const running = started.move();
  return {
    // An API without a name of its own has its stage in its address.
    origin: `http://127.0.0.1:${port}${api && !distribution ? api.prefix : ''}`,
    dynamodbEndpoint,
    logFile: kept.file,
    key,
    hasConsole: issuer !== undefined,
    emulatorEnded: emulator.ended,
    runSchedules: () => schedules.runAll(),
    close: () => running.disposeAsync(),
  };
}

const hasConsole = (template: Template): boolean =>
  resourcesOf(template, 'AWS::Lambda::Function').some(
    ([, { Properties = {} }]) =>
      'CONSOLE' in ((Properties['Environment'] as { Variables?: object } | undefined)?.Variables ?? {}),
  );

const buildLocalVariables = (
  port: number,
  { dynamodb, lambda, secrets }: { dynamodb: string; lambda: string; secrets: string | undefined },
): Record<string, string> => ({
  RELAY_LOCAL: '1',
  RELAY_PUBLIC_HOST: `127.0.0.1:${port}`,
  AWS_ENDPOINT_URL_DYNAMODB: dynamodb,
  AWS_ENDPOINT_URL_LAMBDA: lambda,
  ...(secrets !== undefined && {
    AWS_ENDPOINT_URL_SSM: secrets,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: secrets,
  }),
});

/** Resolves the origins alone: aliases, certificates and edge functions are not emulated. */
function readDistributionConfig(references: LocalReferences): DistributionConfig {
  const [first, ...others] = resourcesOf(references.template, 'AWS::CloudFront::Distribution');
  if (first === undefined || others.length > 0)
    throw new StartError('the template must have one distribution');
  const config = first[1].Properties?.['DistributionConfig'] as DistributionConfig;
  return { ...config, Origins: references.resolve(config.Origins) as DistributionConfig['Origins'] };
}

/**
 * Returns the sequence number of the newest record that the publication at the start covers. Otherwise the stream of each table
 * would run the function once more, and each run compiles the same configuration again in 30 ms.
 */
function findLastPublished(
  { target, properties }: Mapping,
  newestRecord: Emulator['newestRecord'],
): number | undefined {
  const table = properties.EventSourceArn.split('/')[1] ?? '';
  const isPublished = publishedTables.some((name) => physicalNameOf(localStackName, name) === table);
  if (target.settings.name !== 'config' || !isPublished) return undefined;
  return Number(newestRecord?.(table) ?? -1);
}

interface CalledFunction {
  settings: { name: string };
  call(event: object): Promise<unknown>;
}

/**
 * Publishes the rows that exist at the start, so that first requests need not wait for the streams to invoke
 * the function. Throws StartError when they cannot be published.
 */
export async function publishConfiguration(
  functions: ReadonlyMap<string, CalledFunction>,
  log: StackLog,
): Promise<void> {
  const config = [...functions.values()].find(({ settings }) => settings.name === 'config');
  await config?.call({ 'detail-type': 'Scheduled Event', source: 'relay.start' }).catch((error: unknown) => {
    const { message, errorType } = error as Error & { errorType?: string };
    if (errorType !== MarksLost.name) throw new StartError(`cannot publish the configuration: ${message}`);
    // The configuration is published before rows are marked, and the schedule retries the marks.
    log(`[start] ${message}`);
  });
}
