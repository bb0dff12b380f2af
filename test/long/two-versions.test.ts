/**
 * Two versions on one set of tables, as while a deployment shifts traffic or after its rollback: each gets half of the
 * calls, under load, with edits of the configuration; functions on streams and schedules run only one version.
 * `RELAY_BESIDE_SECONDS=60` shortens each of the four runs.
 */
import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { startVendors } from '../../infra/local/vendors/vendors.ts';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { startStack, type RunningStack } from '../../infra/local/start-stack.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import { answeringFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { runOps } from '../ops/run-ops.ts';
import { emulatorClient } from '../support/emulator.ts';
import { formerBuild, type FormerBuild } from '../rollout/former-build.ts';
import { WeightedFunction } from '../rollout/weighted-function.ts';

const seconds = Number(process.env['RELAY_BESIDE_SECONDS'] ?? 600);
const setUpSeconds = 300;
/** Functions whose calls a deployment shifts. */
const answering = new Set<string>([...answeringFunctions, 'catalog']);

interface Former {
  name: string;
  commit: string;
  /**
   * Functions without a schedule in that version. CloudFormation creates a schedule after its function is updated, so the
   * former version never gets one of its events.
   */
  unscheduled: ReadonlySet<string>;
}

const formers: Former[] = [
  { name: 'the version of 27 November', commit: 'e19aa806', unscheduled: new Set(['background']) },
];

/** The busy account makes so many calls at once that it is split into shards where that is allowed. */
const callers: Record<string, number> = { quiet: 1, limited: 2, planned: 1, busy: 12 };
const keyOf = (account: string): string => `sk-beside-${account}`;

const builds = new Map<string, FormerBuild>();
const buildOf = (commit: string): FormerBuild => {
  const found = builds.get(commit) ?? formerBuild(commit);
  builds.set(commit, found);
  return found;
};
afterAll(() => {
  for (const build of builds.values()) build.remove();
});

interface Beside {
  stack: RunningStack;
  documents: DynamoDBDocumentClient;
  /** Number of calls that each version received. */
  invocations: Map<string, number>;
  /** Log lines that should not occur. */
  alarming: string[];
  background: Map<string, LocalFunction>;
  stop(): Promise<void>;
}

interface BesideOptions {
  build: FormerBuild;
  unscheduled: ReadonlySet<string>;
  /** The version whose functions run on streams and schedules. */
  background: 'today' | 'former';
}

const alarmingLines =
  /settle_lost|reserve_unknown|conservation_broken|_poisoned|config_format_unknown|"fault"|Poisoned|"status":503/;

async function startBeside({ build, unscheduled, background }: BesideOptions): Promise<Beside> {
  const upstream = await startVendors();
  const invocations = new Map<string, number>();
  const alarming: string[] = [];
  const others = new Map<string, LocalFunction>();
  const log = (line: string): void => {
    if (alarmingLines.test(line)) alarming.push(line);
  };
  const stack = await startStack(
    {
      port: 0,
      dynamodbPort: 0,
      dataFolder: undefined,
      templateFolder: path.resolve(import.meta.dirname, '../../cdk.out'),
      seed: 'none',
      upstreamKey: false,
      functionEnvironment: { RELAY_SWEEP_GRACE: '1' },
      environmentsMax: 5,
      compute: 'event',
      inPlaceOf: (live) => {
        const { settings } = live;
        const folder = build.bundle(settings.name);
        if (folder === undefined) return live;
        if (!answering.has(settings.name)) {
          const today = new LocalFunction(settings, log);
          const past = new LocalFunction({ ...settings, folder }, log);
          others.set(`today ${settings.name}`, today).set(`former ${settings.name}`, past);
          return background === 'today' || unscheduled.has(settings.name) ? today : past;
        }
        const alias = new WeightedFunction({
          live: settings,
          log,
          count: (metric, version) => {
            const name = `${settings.name} ${metric} ${version}`;
            invocations.set(name, (invocations.get(name) ?? 0) + 1);
          },
        });
        void alias.publish(folder);
        alias.weight = 0.5;
        return alias;
      },
    },
    log,
  );
  const documents = DynamoDBDocumentClient.from(emulatorClient(stack.dynamodbEndpoint));
  for (const [table, row] of rowsFor(upstream.url('demo'))) await put(documents, table, row);
  return {
    stack,
    documents,
    invocations,
    alarming,
    background: others,
    async stop() {
      documents.destroy();
      await stack.close();
      await Promise.all([...others.values()].map((other) => other.close()));
      await upstream.close();
    },
  };
}

const put = (documents: DynamoDBDocumentClient, table: TableName, Item: object): Promise<unknown> =>
  documents.send(new PutCommand({ TableName: physicalNameOf('relay', table), Item }));

/** Rows that both versions can read. */
function rowsFor(endpoint: string): [TableName, Record<string, unknown>][] {
  const limits: Record<string, object> = { limited: { max_concurrency: 50, rpm: 5000 } };
  return [
    [
      'channels',
      {
        id: 'demo',
        type: 'openai',
        endpoint,
        models: ['demo-chat'],
        priority: 0,
        state: true,
        name: 'first',
      },
    ],
    ['charges', { id: 1, type: 'token-billing', models: ['demo-chat'], input: 0.001, output: 0.002 }],
    [
      'plans',
      {
        level: 1,
        price: 30,
        items: [{ id: 'calls', name: 'Calls', icon: '', value: 1_000_000, models: ['demo-chat'] }],
      },
    ],
    ['settings', { name: 'subscription.enabled', value: true }],
    ['accounts', { account: 'planned', plan: { level: 1, since: '2026-01-01' } }],
    ...Object.keys(callers).flatMap((account): [TableName, Record<string, unknown>][] => [
      ['keys', { hash: keyHash(keyOf(account)), account, ...limits[account] }],
      ['grants', { account, grant_id: 'first', amount: 1000 }],
    ]),
  ];
}

async function call({ stack }: Beside, account: string): Promise<{ status: number; text: string }> {
  const streamed = Math.random() < 0.5;
  const reply = await fetch(`${stack.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keyOf(account)}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'demo-chat',
      messages: [{ role: 'user', content: 'Hello!' }],
      max_tokens: 12,
      ...(streamed && { stream: true, stream_options: { include_usage: true } }),
    }),
  });
  return { status: reply.status, text: await reply.text() };
}

async function balanceOf({ stack }: Beside, account: string): Promise<unknown> {
  const reply = await fetch(`${stack.origin}/v1/account`, {
    headers: { authorization: `Bearer ${keyOf(account)}` },
  });
  expect(reply.status).toBe(200);
  return ((await reply.json()) as { balance: unknown }).balance;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(200);
}

/** Waits until every account is served by both versions: the configuration is live and the balances exist. */
const ready = (beside: Beside): Promise<void> =>
  until(async () => {
    const replies = await Promise.all(
      Object.keys(callers).flatMap((account) => [call(beside, account), call(beside, account)]),
    );
    return replies.every(({ status }) => status === 200);
  });

/** Calls of all accounts, and an edit of the configuration every few seconds. Returns the calls without a complete answer. */
async function load(beside: Beside, forMs: number): Promise<{ calls: number; bad: string[] }> {
  const untilMs = Date.now() + forMs;
  const bad: string[] = [];
  let calls = 0;
  const caller = async (account: string): Promise<void> => {
    while (Date.now() < untilMs) {
      const { status, text } = await call(beside, account);
      calls += 1;
      if (status !== 200 || text.includes('"error":{')) bad.push(`${account} ${status} ${text.slice(-300)}`);
    }
  };
  const editor = async (): Promise<void> => {
    for (let edit = 2; Date.now() < untilMs; edit += 1) {
      await sleep(3_000);
      const row = { id: 1, type: 'token-billing', models: ['demo-chat'], input: 0.001, output: 0.001 * edit };
      await put(beside.documents, 'charges', row);
    }
  };
  await Promise.all([
    editor(),
    ...Object.entries(callers).flatMap(([account, atOnce]) =>
      Array.from({ length: atOnce }, () => caller(account)),
    ),
  ]);
  return { calls, bad };
}

/** Writes an open entry as a call leaves it that died long ago. */
async function leaveOpen({ stack }: Beside, id: string): Promise<void> {
  const entry = ['1', '5000000', '1000000', '0123456789ab', 'demo-chat', '1:tokens:0.001:0.002', '', ''];
  const L = entry.map((value, index) => (index < 3 ? { N: value } : { S: value }));
  const client = emulatorClient(stack.dynamodbEndpoint);
  await client.send(
    new UpdateItemCommand({
      TableName: 'relay-quotas',
      Key: { account: { S: 'quiet' } },
      UpdateExpression: 'SET #open.#id = :entry, available = available - :amount',
      ExpressionAttributeNames: { '#open': 'open', '#id': id },
      ExpressionAttributeValues: { ':entry': { L }, ':amount': { N: '5000000' } },
    }),
  );
  client.destroy();
}

const openEntries = async ({ documents }: Beside): Promise<string[]> => {
  const { Items = [] } = await documents.send(new ScanCommand({ TableName: 'relay-quotas' }));
  return Items.flatMap((item) => Object.keys((item['open'] ?? {}) as object));
};

describe.each(formers)('$name beside this one', (former) => {
  it.each(['today', 'former'] as const)(
    'answers every call, reads every entry and loses no charge while functions of %s run on streams and schedules',
    async (background) => {
      const beside = await startBeside({ ...former, build: buildOf(former.commit), background });
      try {
        await ready(beside);
        const { calls, bad } = await load(beside, seconds * 1000);
        // The functions' log lines about them explain a failure.
        expect(bad.slice(0, 5).concat(bad.length > 0 ? beside.alarming.slice(0, 5) : [])).toEqual([]);
        expect(calls).toBeGreaterThan(seconds);
        for (const version of ['1', '2'])
          expect(beside.invocations.get(`chat Invocations ${version}`)).toBeGreaterThan(calls / 3);
        expect([...beside.invocations.keys()].filter((name) => name.includes('Errors'))).toEqual([]);

        for (const account of Object.keys(callers))
          expect(await balanceOf(beside, account)).toEqual(await balanceOf(beside, account));

        await until(async () => (await openEntries(beside)).length === 0);
        await leaveOpen(beside, `00000000000000000000${background === 'today' ? 'TODAY0' : 'FORMER'}`);
        await until(async () => {
          await beside.stack.runSchedules();
          return (await openEntries(beside)).length === 0;
        });

        const audit = await runOps(['audit', '--wait', '30'], {
          AWS_ENDPOINT_URL_DYNAMODB: beside.stack.dynamodbEndpoint,
        });
        expect(audit.output).toContain('all balances match');
        expect(beside.alarming.slice(0, 5)).toEqual([]);
      } finally {
        await beside.stop();
      }
    },
    (seconds + setUpSeconds) * 1000,
  );
});
