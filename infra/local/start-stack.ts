import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { startDemoUpstream } from './demo/upstream.ts';
import { startEmulator, type Emulator } from './host/emulator.ts';
import { Checkpoints } from './events/checkpoints.ts';
import { EventSourceMapping } from './events/event-source-mapping.ts';
import { Schedules } from './events/schedules.ts';
import { readBehaviours, type DistributionConfig } from './distribution/behaviours.ts';
import { FrontDoor } from './distribution/distribution.ts';
import { isPortInUse } from './host/free-port.ts';
import type { Log } from './host/log.ts';
import type { LocalOptions } from './host/local-options.ts';
import { demoKey, seedDemo, seedOpenai } from './demo/seed.ts';
import { StartError } from './host/start-error.ts';
import { createDynamoClient, createTables } from './template/build-tables.ts';
import { buildMappings, buildSchedules } from './template/build-events.ts';
import { buildFunctions, buildFunctionUrls } from './template/build-functions.ts';
import { readTemplate, resourcesOf, type Template } from './template/read-template.ts';
import { createReferences, localRegion, type LocalReferences } from './template/references.ts';

export interface StackSettings extends LocalOptions {
  /** Where the synthesized template is. */
  templateFolder: string;
  stackName: string;
  environmentsMax: number;
}

export interface RunningStack {
  /** The front door: `http://127.0.0.1:8787`. */
  origin: string;
  dynamodbEndpoint: string;
  /** The demo key; undefined when nothing was seeded. */
  key: string | undefined;
  /** Resolves with the reason when the emulator stops without being asked to. */
  emulatorEnded: Promise<string>;
  runSchedules(): Promise<void>;
  close(): Promise<void>;
}

/** Runs the synthesized template. Throws StartError for what the caller can mend; nothing is left behind then. */
export async function startStack(settings: StackSettings, log: Log): Promise<RunningStack> {
  await using started = new AsyncDisposableStack();
  const template = readTemplate(settings.templateFolder, settings.stackName);
  const references = createReferences(template);

  const frontDoor = new FrontDoor();
  const port = await listen(frontDoor, settings.port);
  started.defer(() => frontDoor.close());
  const [emulator, upstream] = await Promise.all([
    startEmulator(settings).then((emulator) => started.adopt(emulator, () => emulator.stop())),
    settings.seed === 'demo'
      ? startDemoUpstream().then((upstream) => started.adopt(upstream, () => upstream.close()))
      : undefined,
  ]);
  const client = createDynamoClient(emulator.endpoint);
  await createTables(client, template, references);

  const functions = buildFunctions(template, references, functionOptions(settings, emulator), log);
  started.defer(async () => {
    await Promise.all([...functions.values()].map((target) => target.close()));
  });
  const streams = new DynamoDBStreamsClient({
    endpoint: emulator.endpoint,
    region: localRegion,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  const checkpoints = new Checkpoints(settings.dataFolder);
  const mappings = buildMappings(template, references, functions).map(
    (mapping) => new EventSourceMapping(mapping, streams, checkpoints, log),
  );
  const schedules = new Schedules(buildSchedules(template, references, functions), log);
  started.defer(() => schedules.stop());
  for (const mapping of mappings) {
    await mapping.start();
    started.defer(() => mapping.stop());
  }
  const key = upstream && demoKey(settings.dataFolder);
  if (upstream && key !== undefined) await seedDemo(client, `http://127.0.0.1:${upstream.port}/v1`, key);
  if (settings.openaiKey) await seedOpenai(client);
  await publishConfiguration(functions, log);
  schedules.start();
  frontDoor.open(readBehaviours(distribution(template, references)), buildFunctionUrls(template, functions));

  // A second time, since what was started last is closed first: no request may meet a half-closed stack.
  started.defer(() => frontDoor.close());
  const running = started.move();
  return {
    origin: `http://127.0.0.1:${port}`,
    dynamodbEndpoint: emulator.endpoint,
    key,
    emulatorEnded: emulator.ended,
    runSchedules: () => schedules.runAll(),
    close: () => running.disposeAsync(),
  };
}

async function listen(frontDoor: FrontDoor, port: number): Promise<number> {
  try {
    return await frontDoor.listen(port);
  } catch (error) {
    if (isPortInUse(error)) throw new StartError(`port ${port} is in use; set PORT to another`);
    throw error;
  }
}

interface CalledFunction {
  settings: { name: string };
  call(event: object): Promise<unknown>;
}

/** The type of the function's error when only marks were lost: MarksLost in shared/relay/ports/row-marks.ts. */
const marksLost = 'MarksLost';

/**
 * The rows that are there now: the first requests must not come before the streams have brought the function about.
 * Throws StartError when they are not published.
 */
export async function publishConfiguration(
  functions: ReadonlyMap<string, CalledFunction>,
  log: Log,
): Promise<void> {
  const config = [...functions.values()].find(({ settings }) => settings.name === 'config');
  await config?.call({ 'detail-type': 'Scheduled Event', source: 'relay.start' }).catch((error: unknown) => {
    const { message, errorType } = error as Error & { errorType?: string };
    if (errorType !== marksLost) throw new StartError(`the configuration cannot be published: ${message}`);
    // Rows are marked once the configuration is published; the schedule marks them again.
    log(`[start] ${message}`);
  });
}

const functionOptions = (settings: StackSettings, emulator: Emulator) => ({
  environment: settings.functionEnvironment,
  localEnvironment: { RELAY_LOCAL: '1', AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint },
  environmentsMax: settings.environmentsMax,
});

/** Only the parts that the front door follows: aliases, certificates and edge functions stay unresolved. */
function distribution(template: Template, references: LocalReferences): DistributionConfig {
  const [first, ...others] = resourcesOf(template, 'AWS::CloudFront::Distribution');
  if (first === undefined || others.length > 0)
    throw new StartError('the template must have one distribution');
  const config = first[1].Properties?.['DistributionConfig'] as DistributionConfig;
  return references.resolve({
    Origins: config.Origins,
    CacheBehaviors: config.CacheBehaviors?.map(behaviour),
    DefaultCacheBehavior: behaviour(config.DefaultCacheBehavior),
  }) as DistributionConfig;
}

const behaviour = ({
  PathPattern,
  TargetOriginId,
  AllowedMethods,
}: DistributionConfig['DefaultCacheBehavior']) => ({
  PathPattern,
  TargetOriginId,
  AllowedMethods,
});
