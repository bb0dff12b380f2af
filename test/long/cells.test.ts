/**
 * Cells (examples/cells) under load: local stacks behind the example's router, customers created and moved by the commands of its page. Cells are
 * killed and added, and the move is killed after each of its writes.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBDocumentClient, paginateScan } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createApp } from '../../infra/stack/create-app.ts';
import type { TableName } from '../../shared/tables/table-names.ts';
import { readPage } from '../docs/pages.ts';
import { nano, until } from '../local/money-reader.ts';
import {
  ask,
  EdgeStore,
  loadRouter,
  runShell,
  spawnShell,
  startEdge,
  startTables,
  writeCommands,
  type Answer,
  type Edge,
  type Router,
  type Shell,
  type Tables,
} from '../support/cells-rig.ts';
import { emulatorClient } from '../support/emulator.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';

const root = path.join(import.meta.dirname, '../..');
const memory = '/dev/shm';
const folder = mkdtempSync(path.join(existsSync(memory) ? memory : tmpdir(), 'relay-cells-'));
let commands: Awaited<ReturnType<typeof writeCommands>>;
let shell: Shell;
const cellNames = ['cell-a', 'cell-b', 'cell-c'];
const granted = 50;

const page = readPage('examples/cells/README.md');
/** Returns the first block of commands on the page that contains a text. */
const commandsWith = (text: string): string =>
  (page.match(/(?:^ {4}.*\n)+/gm) ?? []).find((block) => block.includes(text))?.replaceAll(/^ {4}/gm, '') ??
  expect.fail(`the page has no command with ${text}`);

const hostOfCell = (cell: string): string => `${cell}.execute-api.us-east-1.amazonaws.com`;
const hostOf = (account: string): string => `${account}.api.example.com`;
const slotOf = (account: string): number => createHash('sha256').update(account).digest()[0] ?? 0;

const cells = new Map<string, LocalStack>();
const firstCells = cellNames.slice(0, 2);
let router: Router = loadRouter(firstCells.map(hostOfCell));
let upstream: ScriptedUpstream;
let edge: Edge;
let tables: Tables;
const store = new EdgeStore(folder, 2);

const endpointOf = (cell: string): string | undefined => cells.get(cell)?.dynamodbEndpoint;

async function startCell(cell: string): Promise<void> {
  const env = {
    RELAY_TEMPLATE_FOLDER: path.join(folder, 'template'),
    RELAY_DATA: path.join(folder, cell),
    RELAY_SWEEP_GRACE: '0',
  };
  cells.set(cell, await startLocalStack({ seed: 'none', env }));
}

const operate = (script: string): Promise<string> => runShell(shell, tables, script);

/** Calls whose text contains `hold` are answered when this resolves. */
let hold = Promise.withResolvers<void>();

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'local').stubEnv('AWS_SECRET_ACCESS_KEY', 'local');
  vi.stubEnv('AWS_REGION', 'us-east-1');
  commands = await writeCommands(folder);
  shell = { folder, bin: commands.bin };
  const options = { frontDoor: 'api' };
  const outputFolder = path.join(folder, 'template');
  createApp({ outputFolder, bundlesFolder: path.join(root, 'dist'), options, validate: false }).app.synth();
  upstream = await startScriptedUpstream();
  upstream.script(async (call, reply) => {
    if (call.text.includes('"hold')) await hold.promise;
    await textStream('Hello there.')(call, reply);
  });
  await Promise.all(firstCells.map(startCell));
  tables = await startTables(endpointOf);
  edge = await startEdge({
    store,
    router: () => router,
    portOf: (host) => {
      const url = cells.get(host.split('.')[0] ?? '')?.baseUrl;
      return url === undefined ? undefined : Number(new URL(url).port);
    },
  });
  await operate(commandsWith('--key slots'));
}, 120_000);

afterAll(async () => {
  load.stop();
  hold.resolve();
  for (const cell of cells.values()) await cell.stop();
  edge?.close();
  tables?.close();
  commands?.close();
  vi.unstubAllEnvs();
  await upstream?.close();
  rmSync(folder, { recursive: true });
});

interface Seen {
  account: string;
  status: number;
  /** The request id of an answer. */
  id: string | undefined;
  atMs: number;
}

interface Customer {
  account: string;
  key: string;
  /** The cell in which it was created. */
  first: string;
}

const customers = new Map<string, Customer>();
const keyOf = (account: string): string => customers.get(account)?.key ?? '';
let texts = 0;

async function call(
  account: string,
  { host = hostOf(account), text = '', headers = {} } = {},
): Promise<Answer> {
  texts += 1;
  const content = text || `text-${texts}-`;
  const body = { model: 'chat', max_tokens: 20, messages: [{ role: 'user', content }] };
  return ask(edge, host, { path: '/v1/chat/completions', key: keyOf(account), body, headers });
}

/** Each customer makes a call every two seconds. */
const load = {
  seen: [] as Seen[],
  isStopped: false,
  loops: [] as Promise<void>[],
  start(account: string): void {
    this.loops.push(this.loop(account));
  },
  async loop(account: string): Promise<void> {
    while (!this.isStopped) {
      const atMs = Date.now();
      const { status, text } = await call(account).catch(() => ({ status: 0, text: '' }));
      const id = status === 200 ? /"chatcmpl-([^"]+)"/.exec(text)?.[1] : undefined;
      this.seen.push({ account, status, id, atMs });
      await sleep(2_000);
    }
  },
  stop(): void {
    this.isStopped = true;
  },
  since: (atMs: number, of: readonly string[]): number[] =>
    load.seen.filter((each) => each.atMs > atMs && of.includes(each.account)).map(({ status }) => status),
};

/** Creates a customer by the commands of the page. */
async function createCustomer(account: string, attributes = ''): Promise<void> {
  const first = firstCells[slotOf(account) % 2] ?? '';
  const script = commandsWith('customer new').replaceAll('acme', account).replace('cell-a', first);
  const output = await operate(script.replace(`${account} --grant`, `${account} ${attributes} --grant`));
  expect(Number.parseInt(output, 16)).toBe(slotOf(account));
  customers.set(account, { account, first, key: /sk-[\w-]{20,}/.exec(output)?.[0] ?? '' });
}

const named = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${name}-${at}`);

async function rowsOf(cell: string, table: TableName): Promise<Record<string, unknown>[]> {
  const client = emulatorClient(endpointOf(cell) ?? '');
  const documents = DynamoDBDocumentClient.from(client);
  const rows: Record<string, unknown>[] = [];
  for await (const { Items = [] } of paginateScan({ client: documents }, { TableName: `relay-${table}` }))
    rows.push(...Items);
  client.destroy();
  return rows;
}

/** Sums of an account over all cells, in nano-yuan. */
async function moneyOf(account: string) {
  const sum = { available: 0, spent: 0, granted: 0, metered: 0, open: 0 };
  for (const cell of cells.keys())
    for (const row of await rowsOf(cell, 'quotas'))
      if (String(row['account']).split('#')[0] === account) {
        for (const name of ['available', 'spent', 'granted', 'metered'] as const)
          sum[name] += Number(row[name] ?? 0);
        sum.open += Object.keys(row['open'] ?? {}).length;
      }
  return sum;
}

const balanceIn = async (cell: string, account: string): Promise<number> =>
  (await rowsOf(cell, 'quotas'))
    .filter((row) => String(row['account']).split('#')[0] === account)
    .reduce((sum, row) => sum + Number(row['available']), 0);

async function openCellsOf(account: string): Promise<string[]> {
  const open: string[] = [];
  for (const cell of cells.keys())
    if (
      (await rowsOf(cell, 'accounts')).some((row) => row['account'] === account && row['enabled'] !== false)
    )
      open.push(cell);
  return open;
}

/** The command of the page that moves an account. */
const moveCommand = (account: string, from: string, to: string): string =>
  commandsWith('move.ts').replace('acme cell-a cell-b', `${account} ${from} ${to}`);

/** Runs the move, and kills all its processes after this many writes. */
async function move(account: string, from: string, to: string, killAfter = Infinity) {
  let writes = 0;
  const watched = await startTables(endpointOf, ({ isWrite }) => {
    if (isWrite) writes += 1;
    if (!isWrite || writes !== killAfter) return;
    shot.kill();
    watched.close();
  });
  const shot = spawnShell(shell, watched, moveCommand(account, from, to));
  const { code, output } = await shot.ended;
  watched.close();
  return { code, output, writes };
}

/** Routes an account to a cell, by the commands of the page. */
async function route(account: string, cell: string): Promise<void> {
  const script = commandsWith('--key account:acme').replace('account:acme', `account:${account}`);
  await operate(script.replace('--value 1', `--value ${cellNames.indexOf(cell)}`));
}

const steady = named('steady', 6);
/** These call while they are moved. Each move is killed after a different write. */
const movers = named('moved', 9);
const again = named('again', 2);
const refused = named('refused', 2);
const [planned, limited, metered] = ['planned', 'limited', 'metered'] as const;
const everybody = [...steady, ...movers, ...again, ...refused, planned, limited, metered];

test('customers are created in the cell of their slot, and the page copies the configuration to the other cell', async () => {
  const rows = {
    channels: [
      { id: 'chat', endpoint: upstream.endpoint, models: ['chat'], state: true, first_content_seconds: 290 },
      {
        id: 'other',
        endpoint: 'https://api.openai.com/v1',
        secret: 'ssm:/relay/cell-a/channels/api.openai.com/k',
        models: ['x'],
      },
    ],
    charges: [{ id: 10, type: 'token-billing', models: ['chat'], input: 1, output: 2 }],
    plans: [
      { level: 1, price: 1, items: [{ id: 'chat', name: 'Chat', icon: '', value: 3, models: ['chat'] }] },
    ],
    settings: [
      { name: 'limits', value: { request_seconds: 300 } },
      { name: 'subscription.enabled', value: true },
      { name: 'store', value: { all_keys: true } },
    ],
  };
  await operate(
    `echo '${JSON.stringify(rows)}' > first.json; relay-ops config apply first.json --stack cell-a --yes`,
  );
  await operate(commandsWith('config apply'));
  const [, other] = (await rowsOf('cell-b', 'channels')).toSorted((a, b) =>
    String(a['id']).localeCompare(String(b['id'])),
  );
  expect(other).toMatchObject({ id: 'other', secret: 'ssm:/relay/cell-b/channels/api.openai.com/k' });

  expect((await call('nobody')).status).toBe(503);
  store.reach();
  await Promise.all(steady.map((account) => createCustomer(account)));
  expect(new Set([...customers.values()].map(({ first }) => first)).size).toBe(2);
  await until(async () =>
    (await Promise.all(steady.map((account) => call(account)))).every(({ status }) => status === 200),
  );
  for (const account of steady) load.start(account);
}, 180_000);

test('a key gets 401 under the host name of an account in another cell; unusual host names lead to its own account or get 401', async () => {
  const [here = ''] = steady;
  const other = steady.find((account) => customers.get(account)?.first !== customers.get(here)?.first) ?? '';
  expect((await call(here, { host: hostOf(other) })).status).toBe(401);
  // The first label in lower case selects the cell; the key selects the account.
  const same = [
    here.toUpperCase() + '.API.example.com',
    `${hostOf(here)}.`,
    `${hostOf(here)}:443`,
    `${here}.x.api.example.com`,
  ];
  for (const host of same) expect([host, (await call(here, { host })).status]).toEqual([host, 200]);
  for (const host of [
    '',
    '.',
    '-',
    'xn--bcher-kva.api.example.com',
    'a'.repeat(300),
    '__proto__',
    '127.0.0.1',
  ])
    expect([host, [200, 401]]).toEqual([host, expect.arrayContaining([(await call(here, { host })).status])]);
});

test('only customers of a killed cell get 502, and they are served again after its restart', async () => {
  const [lost, kept] = ['cell-b', 'cell-a'].map((cell) =>
    steady.filter((name) => customers.get(name)?.first === cell),
  );
  const atMs = Date.now();
  const stack = cells.get('cell-b');
  process.kill(stack?.pid ?? 0, 'SIGKILL');
  cells.delete('cell-b');
  const last = (of: readonly string[] = []) =>
    of.map((name) => load.seen.findLast(({ account }) => account === name)?.status);
  await until(async () => last(lost).every((status) => status === 502));
  const goneMs = Date.now();
  await until(async () => load.since(goneMs, kept ?? []).length > 10);
  expect(load.since(atMs, kept ?? []).filter((status) => status !== 200)).toEqual([]);
  // Answers that had started are cut.
  expect(load.since(atMs, lost ?? []).filter((status) => ![200, 502, 0].includes(status))).toEqual([]);
  expect(new Set(load.since(goneMs, lost ?? []))).toEqual(new Set([502]));
  await startCell('cell-b');
  await until(async () => last(lost).every((status) => status === 200));
}, 120_000);

test('a new cell moves no customer, even while some edges have the old map', async () => {
  await startCell('cell-c');
  await operate(commandsWith('config apply').replaceAll('cell-b', 'cell-c'));
  router = loadRouter(cellNames.map(hostOfCell));
  const atMs = Date.now();
  const used = new Set(everybody.map(slotOf));
  const slots = '01'
    .repeat(128)
    .split('')
    .map((cell, slot) => (used.has(slot) || slot % 3 > 0 ? cell : '2'));
  const script = commandsWith('--key slots').replace(/"\$\(printf.*\)"/, `"${slots.join('')}"`);
  await operate(script);
  store.reach(0);
  await until(async () => load.since(atMs, steady).length > 20);
  store.reach();
  await until(async () => load.since(atMs, steady).length > 40);
  expect(new Set(load.since(atMs, steady))).toEqual(new Set([200]));
}, 120_000);

const oldCellOf = (account: string): string => customers.get(account)?.first ?? '';

test('whichever write a move is killed after, repeating it moves the whole balance once, while the customer calls', async () => {
  await Promise.all(movers.map((account) => createCustomer(account)));
  for (const account of movers) load.start(account);
  const killed = await Promise.all(
    movers.map(async (account, at) => {
      const shot = await move(account, oldCellOf(account), 'cell-c', at + 1);
      const { granted: inAll } = await moneyOf(account);
      // After a killed move no open cell may have the balance, but two never do.
      expect([account, Math.max(inAll, granted * nano)]).toEqual([account, granted * nano]);
      expect((await openCellsOf(account)).length).toBeLessThanOrEqual(1);
      return shot;
    }),
  );
  // Eight writes: closing (2), the key, the account, two grants, opening (2). So all moves but the last were killed.
  expect(killed.map(({ code }) => code)).toEqual([...movers.slice(1).map(() => null), 0]);
  for (const account of movers)
    expect([account, await move(account, oldCellOf(account), 'cell-c')]).toEqual([
      account,
      expect.objectContaining({ code: 0 }),
    ]);
  await expectInCell(movers, 'cell-c');
  for (const account of movers) await route(account, 'cell-c');
  store.reach(1);
  // The other edge still leads to the closed account.
  for (const account of movers)
    for (const [at, status] of [401, 200].entries())
      expect([account, at, (await call(account, { headers: { 'x-edge': at } })).status]).toEqual([
        account,
        at,
        status,
      ]);
  store.reach();
  await untilServed(movers);
});

const untilServed = (accounts: readonly string[]): Promise<void> =>
  until(async () => accounts.every((account) => lastStatus(account, 2).every((status) => status === 200)));

const lastStatus = (account: string, count: number): number[] =>
  load.seen
    .filter((each) => each.account === account)
    .slice(-count)
    .map(({ status }) => status);

async function expectInCell(accounts: readonly string[], cell: string): Promise<void> {
  for (const account of accounts) {
    expect([account, await openCellsOf(account)]).toEqual([account, [cell]]);
    for (const other of cellNames.filter((name) => name !== cell))
      expect([account, other, await balanceIn(other, account)]).toEqual([account, other, 0]);
  }
}

test('a move that is killed repeatedly, and two concurrent moves, have the result of one', async () => {
  const [often = '', twice = ''] = again;
  await Promise.all([often, twice].map((account) => createCustomer(account)));
  for (const account of [often, twice]) load.start(account);
  const both = Promise.all([1, 2].map(() => move(twice, oldCellOf(twice), 'cell-c')));
  let shots = 0;
  // Each repeat writes less: only the grants are written again.
  for (let code: number | null = null; code !== 0; shots += 1)
    ({ code } = await move(often, oldCellOf(often), 'cell-c', 1 + (shots >> 1)));
  expect(shots).toBeGreaterThan(4);
  await both;
  expect(await move(twice, oldCellOf(twice), 'cell-c')).toMatchObject({ code: 0 });
  await expectInCell([often, twice], 'cell-c');
  for (const account of [often, twice]) expect((await moneyOf(account)).granted).toBe(granted * nano);
});

test('the same command moves money that reaches the old cell later, and a moved account can move back', async () => {
  const [account = ''] = movers;
  const old = oldCellOf(account);
  for (const [id, amount, sum] of [
    ['late', 7, 57],
    ['refund', -3, 54],
  ] as const) {
    await operate(`relay-ops grant new ${account} ${amount} --id ${id} --yes --stack ${old}`);
    expect(await move(account, old, 'cell-c')).toMatchObject({ code: 0 });
    await expectInCell([account], 'cell-c');
    expect((await moneyOf(account)).granted).toBe(sum * nano);
  }
  // A repeat of the move does not open an account that the operator has closed since.
  await operate(`relay-ops customer close ${account} --yes --stack cell-c`);
  expect(await move(account, old, 'cell-c')).toMatchObject({ code: 0 });
  expect(await openCellsOf(account)).toEqual([]);
  expect(await move(account, 'cell-c', old)).toMatchObject({ code: 0 });
  await expectInCell([account], old);
  await route(account, old);
  store.reach();
  await untilServed([account]);
});

test('a move is refused for a disabled account, and for one that already exists in the new cell', async () => {
  const [off = '', there = ''] = refused;
  await Promise.all([off, there].map((account) => createCustomer(account)));
  await operate(`relay-ops customer off ${off} --yes --stack ${oldCellOf(off)}`);
  await operate(`relay-ops customer new ${there} --yes --stack cell-c`);
  const outputs = await Promise.all(
    [off, there].map(async (account) => move(account, oldCellOf(account), 'cell-c')),
  );
  expect(outputs).toMatchObject([
    { code: 1, output: expect.stringContaining(`${off} is disabled: enable it first`) },
    { code: 1, output: expect.stringContaining(`${there} is already in cell-c`) },
  ]);
  expect((await moneyOf(there)).granted).toBe(granted * nano);
  // A refused move does not close the account.
  expect(await openCellsOf(there)).toEqual([oldCellOf(there), 'cell-c'].toSorted());
});

test('a move waits for running calls; used plan calls, stored responses and idempotency keys stay behind, as the page says', async () => {
  hold = Promise.withResolvers();
  await createCustomer(planned, 'plan.level=1 plan.since=2026-01-01');
  await createCustomer(limited);
  await createCustomer(metered, 'metered=true');
  const hash = createHash('sha256').update(keyOf(limited)).digest('hex');
  await operate(
    `relay-ops key set ${hash} budget.amount=0.3 budget.period=month --stack ${oldCellOf(limited)}`,
  );
  const all = [planned, limited, metered];
  const used = async (): Promise<unknown> => {
    const { text } = await ask(edge, hostOf(planned), { path: '/v1/account', key: keyOf(planned) });
    return (JSON.parse(text) as { plan: { items: { used: number }[] } }).plan.items[0]?.used;
  };
  const repeat = () => call(limited, { text: 'repeat', headers: { 'idempotency-key': 'one' } });
  await until(async () => (await call(planned)).status === 200);
  await call(metered);
  expect(await used()).toBe(1);
  await until(async () => (await repeat()).status === 200);
  expect((await repeat()).status).toBe(200);
  const repeats = () => upstream.requests.filter(({ text }) => text.includes('"repeat"')).length;
  expect(repeats()).toBe(1);
  const body = { model: 'chat', input: 'store', store: true };
  const stored = await ask(edge, hostOf(planned), { path: '/v1/responses', key: keyOf(planned), body });
  const { id } = JSON.parse(stored.text) as { id: string };
  const read = () => ask(edge, hostOf(planned), { path: `/v1/responses/${id}`, key: keyOf(planned) });
  expect((await read()).status).toBe(200);
  const running = call(metered, { text: 'hold' });
  const background = await ask(edge, hostOf(planned), {
    path: '/v1/responses',
    key: keyOf(planned),
    body: { model: 'chat', input: 'hold', background: true },
  });
  expect(background.status).toBe(200);
  await until(async () => upstream.requests.filter(({ text }) => text.includes('"hold"')).length === 2);
  const moves = all.map((account) => move(account, oldCellOf(account), 'cell-c'));
  await moves[1];
  expect(await openCellsOf(limited)).toEqual(['cell-c']);
  expect([await openCellsOf(planned), await openCellsOf(metered)]).toEqual([[], []]);
  hold.resolve();
  expect((await running).status).toBe(200);
  for (const done of moves) expect(await done).toMatchObject({ code: 0 });
  await expectInCell(all, 'cell-c');
  for (const account of all) await route(account, 'cell-c');
  store.reach();
  await until(async () => (await call(metered)).status === 200);
  expect(await used()).toBe(0);
  expect((await read()).status).toBe(404);
  expect((await repeat()).status).toBe(200);
  expect(repeats()).toBe(2);
  expect((await moneyOf(metered)).metered).toBeGreaterThan(0);
});

test('at the end nothing is lost, doubled, or open in two cells, and each audit agrees', async () => {
  load.stop();
  await Promise.all(load.loops);
  const idle = async (): Promise<boolean> =>
    (await Promise.all([...customers.keys()].map(moneyOf))).every(({ open }) => open === 0);
  await until(idle);
  for (const account of customers.keys()) {
    const { available, spent, granted: given, metered } = await moneyOf(account);
    expect([account, given]).toEqual([account, (account === 'moved-0' ? 54 : granted) * nano]);
    expect([account, available + spent - metered]).toEqual([account, given]);
    if (!refused.includes(account))
      expect([account, (await openCellsOf(account)).length]).toEqual([account, 1]);
  }
  for (const cell of cellNames) await operate(`relay-ops audit --wait 60 --stack ${cell}`);
  // Each answer was charged in one cell, and each text was sent upstream once.
  const places = new Map<string, string[]>();
  for (const cell of cellNames)
    for (const { id, kind } of await rowsOf(cell, 'ledger'))
      if (kind === 'settled') places.set(String(id), [...(places.get(String(id)) ?? []), cell]);
  const answered = load.seen.filter(({ status }) => status === 200);
  expect(answered.length).toBeGreaterThan(200);
  expect(answered.filter(({ id = '' }) => places.get(id)?.length !== 1)).toEqual([]);
  const sent = upstream.requests.flatMap(({ text }) => /text-\d+-/.exec(text) ?? []);
  expect(new Set(sent).size).toBe(sent.length);
  expect(load.seen.filter(({ status }) => ![200, 401, 502, 0].includes(status))).toEqual([]);
});
