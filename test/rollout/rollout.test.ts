/**
 * Deploys the functions `chat` and `ledger` on the local stack, as real processes of two bundles behind one alias. A double of
 * CloudWatch counts their log lines; the alarms and the deployment steps come from the synthesized template.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startStack, type RunningStack } from '../../infra/local/start-stack.ts';
import { resourcesOf, synthesize, type Template } from '../infra/synthesize.ts';
import { CloudWatch, keyOf } from './cloud-watch.ts';
import { deploy, planOf, type DeploymentPlan } from './code-deploy.ts';
import { seededBuilds, type Seed } from './seeded-builds.ts';
import { runOps } from '../ops/run-ops.ts';
import { emulatorClient } from '../support/emulator.ts';
import { type Count, WeightedFunction } from './weighted-function.ts';

const templateFolder = path.resolve(import.meta.dirname, '../../cdk.out');
const callsAtOnce = 6;

const template = JSON.parse(
  readFileSync(path.join(templateFolder, 'relay.template.json'), 'utf8'),
) as Template;

/** The logical id of the function's resource of this type. */
function idOf(type: string, start: string): string {
  const found = resourcesOf(template, type).filter(([id]) => id.startsWith(start));
  expect(found).toHaveLength(1);
  return found[0]?.[0] ?? '';
}

const names = ['chat', 'ledger'] as const;
type Name = (typeof names)[number];
const aliasIdOf = (name: Name): string => idOf('AWS::Lambda::Alias', `Functions${name}Live`);
const canary = planOf(template, aliasIdOf('chat'));
const linear = planOf(synthesize({ shifting: 'linear' }).template, aliasIdOf('chat'));

const builds = seededBuilds();
let stack: RunningStack;
let client: DynamoDBClient;
const aliases = new Map<string, WeightedFunction>();
let cloudWatch: CloudWatch;
/** The version of each failed invocation. */
let errors: string[] = [];
/** `underWay`: invocations that have not yet logged their line or failed. */
const seen = { underWay: 0 };
let changed = Promise.withResolvers<void>();

function ended(): void {
  seen.underWay -= 1;
  changed.resolve();
  changed = Promise.withResolvers<void>();
}

function log(line: string): void {
  const [, name, text] = /^\[(chat|ledger)\] (\{.*)$/.exec(line) ?? [];
  if (text === undefined) return;
  cloudWatch.line(idOf('AWS::Logs::LogGroup', `Functions${name}Logs`), text);
  if (text.includes('"message":"request"')) ended();
}

/** Reports to CloudWatch what Lambda reports for an alias with two versions. */
function countOf(name: Name): Count {
  const functionId = idOf('AWS::Lambda::Function', `Functions${name}Function`);
  return (metric, version, value) => {
    const dimensions = { FunctionName: functionId, Resource: `${functionId}:live`, ExecutedVersion: version };
    cloudWatch.put(keyOf('AWS/Lambda', metric, dimensions), value);
    if (name !== 'chat') return;
    if (metric === 'Invocations') seen.underWay += 1;
    else if (value > 0) {
      errors.push(version);
      ended();
    }
  };
}

beforeAll(async () => {
  cloudWatch = new CloudWatch({ template, versionOf: () => '0' });
  stack = await startStack(
    {
      port: 0,
      dynamodbPort: 0,
      dataFolder: undefined,
      templateFolder,
      seed: 'demo',
      upstreamKey: false,
      functionEnvironment: {},
      environmentsMax: 3,
      compute: 'event',
      inPlaceOf: (live) => {
        const name = names.find((each) => each === live.settings.name);
        if (name === undefined) return live;
        const alias = new WeightedFunction({ live: live.settings, log, count: countOf(name) });
        aliases.set(name, alias);
        return alias;
      },
    },
    log,
  );
  client = emulatorClient(stack.dynamodbEndpoint);
}, 60_000);

afterAll(async () => {
  client.destroy();
  await stack.close();
  builds.remove();
});

async function call(content: string): Promise<void> {
  const body = { model: 'demo-chat', messages: [{ role: 'user', content }], max_tokens: 2, stream: true };
  try {
    const reply = await fetch(`${stack.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    await reply.text();
    calls += 1;
  } catch {
    // The answer was cut; the alarm decides whether that matters.
  }
}

async function minuteOfCalls(calls: number, special: string[] = []): Promise<void> {
  const contents = [...special, ...Array.from({ length: calls }, () => 'Hello!')];
  const caller = async (): Promise<void> => {
    for (let next = contents.shift(); next !== undefined; next = contents.shift()) await call(next);
  };
  await Promise.all(Array.from({ length: callsAtOnce }, caller));
  while (seen.underWay > 0) await changed.promise;
}

interface Rollout {
  seed: Seed;
  of?: Name;
  plan?: DeploymentPlan;
  callsEachMinute?: number;
  /** Extra calls by minute, sent before the regular ones. */
  special?: Record<number, string[]>;
}

function aliasOf(name: Name): WeightedFunction {
  const found = aliases.get(name);
  if (!found) throw new Error(`no function ${name}`);
  return found;
}

async function roll({ seed, of = 'chat', plan = canary, callsEachMinute = 20, special = {} }: Rollout) {
  const alias = aliasOf(of);
  const folder = await builds.build(seed);
  const version = await alias.publish(folder);
  const own = new CloudWatch({
    template,
    versionOf: (id) => (id.startsWith(`Functions${of}FunctionCurrentVersion`) ? version : '0'),
  });
  cloudWatch = own;
  const { status, minutes } = await deploy({
    plan,
    alias,
    triggers: (alarm) => own.triggers(alarm),
    minute: async (minute) => {
      own.minute = minute;
      await minuteOfCalls(callsEachMinute, special[minute]);
      if (of === 'ledger') await awaitRows();
    },
  });
  const [alarm = ''] = plan.alarms;
  return { status, minutes, failurePercent: own.value(template.Resources[alarm]?.Properties ?? {}) };
}

let calls = 0;
/** Every call must have its row, even if a bad version failed on its records. */
const awaitRows = (): Promise<void> =>
  expect
    .poll(() => client.send(new ScanCommand(calledRows)).then(({ Count: count }) => count), {
      timeout: 60_000,
    })
    .toBe(calls);
const calledRows = {
  TableName: 'relay-ledger',
  Select: 'COUNT',
  FilterExpression: 'kind <> :grant',
  ExpressionAttributeValues: { ':grant': { S: 'grant' } },
} as const;

describe('a deployment of the function that writes the ledger', () => {
  const plan = planOf(template, aliasIdOf('ledger'));

  test('shifts a tenth more of the traffic each minute, and is watched by the alarms on its errors and on wrong money', () => {
    expect(plan).toEqual({
      alarms: ['ledgerNewVersion', 'MoneyWrong'].map((id) => idOf('AWS::CloudWatch::Alarm', `Alarms${id}`)),
      weights: linear.weights,
    });
  });

  test.each(['ledger that throws', 'ledger with wrong rows'] as const)(
    'of a %s is rolled back, and all balances stay exact',
    async (seed) => {
      const { status, minutes } = await roll({ seed, of: 'ledger', plan });
      expect({ status, weight: aliasOf('ledger').weight }).toEqual({ status: 'RolledBack', weight: 0 });
      expect(minutes).toBeLessThan(10);
      const audit = await runOps(['audit', '--wait', '0'], {
        AWS_ENDPOINT_URL_DYNAMODB: stack.dynamodbEndpoint,
      });
      expect(audit).toMatchObject({ code: 0, output: expect.stringContaining('all balances match') });
    },
    240_000,
  );
});

describe('a deployment', () => {
  test('is stopped only by its own version’s alarm, and shifts as a canary (a tenth of the calls for five minutes) or linearly in ten minutes', () => {
    const alarms = [idOf('AWS::CloudWatch::Alarm', 'AlarmschatNewVersion')];
    expect(canary).toEqual({ alarms, weights: [0.1, 0.1, 0.1, 0.1, 0.1] });
    expect(linear).toEqual({ alarms, weights: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] });
  });

  test('of a build that crashes at boot is rolled back, though it writes no log line', async () => {
    const { status, minutes } = await roll({ seed: 'crash at boot' });
    expect(status).toBe('RolledBack');
    // Every call fails: at two calls a minute, five calls are enough.
    expect(minutes).toBeLessThanOrEqual(3);
    expect(aliasOf('chat').weight).toBe(0);
  }, 120_000);

  test('of a build that fails after the 200 is rolled back once it has enough calls for a ratio', async () => {
    const seed = 'error chunk after the 200';
    const { status, minutes, failurePercent } = await roll({ seed, callsEachMinute: 100 });
    expect({ status, minutes }).toEqual({ status: 'RolledBack', minutes: 5 });
    expect(failurePercent).toBeGreaterThanOrEqual(10);
    expect(failurePercent).toBeLessThan(80);
  }, 240_000);

  test('of a build that fails after the 200 succeeds as a canary on a function with few calls, but is rolled back if linear', async () => {
    const seed = 'error chunk after the 200';
    // Ten calls in five minutes are too few for a ratio.
    expect(await roll({ seed })).toMatchObject({ status: 'Succeeded', minutes: 5 });
    // 6 + 8 + 10 + 12 + 14: the first five minutes with fifty of its calls.
    expect(await roll({ seed, plan: linear })).toMatchObject({ status: 'RolledBack', minutes: 7 });
  }, 240_000);

  test('of a build whose settlements are rejected is rolled back, though every answer is complete', async () => {
    const { status, minutes } = await roll({ seed: 'settle refused' });
    expect(status).toBe('RolledBack');
    expect(minutes).toBeLessThanOrEqual(3);
  }, 120_000);

  test('of a healthy build with one call that ran out of memory succeeds', async () => {
    // The new version gets one of ten calls; the old version has no bug.
    const special = { 3: Array.from({ length: 15 }, () => 'exhaust the memory') };
    errors = [];
    const { status, minutes } = await roll({ seed: 'out of memory once', special });
    expect({ status, minutes }).toEqual({ status: 'Succeeded', minutes: 5 });
    expect(aliasOf('chat').weight).toBe(1);
    expect(errors).toHaveLength(1);
  }, 120_000);
});
