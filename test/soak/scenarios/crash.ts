/**
 * `npm run demo:crash`, a scenario of the soak: shows in half a minute what `kill -9` during a streamed answer does to the
 * reservations. It runs the real stack: distribution, bundled functions under AWS's runtime client, table
 * streams, sweeper. Only the time limit of a request differs: a few seconds instead of ten minutes, so that
 * the sweeper acts soon.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBDocumentClient, GetCommand, PutCommand, QueryCommand } from '@aws-sdk/lib-dynamodb';
import { buildKeyRow } from '../../../infra/local/seed.ts';
import { readOptions } from '../../../infra/local/host/local-options.ts';
import { startStack, type RunningStack } from '../../../infra/local/start-stack.ts';
import { emulatorClient } from '../../support/emulator.ts';

const account = 'crash-demo';
const key = 'sk-crash-demo';
const requestSeconds = 6;
const nanoPerYuan = 1e9;

interface Balance {
  available: number;
  reserved: number;
  spent: number;
  granted: number;
}

interface LedgerLine {
  at: string;
  kind: string;
  model?: string;
  charge?: number;
  amount?: number;
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const yuan = (nano: number): string => `${Number((nano / nanoPerYuan).toFixed(9))} yuan`;

/** Resolves with the exit code: 1 if the account does not add up. */
export async function runCrashScenario(): Promise<number> {
  const pids = new Set<number>();
  const stack = await startStack(
    {
      ...readOptions({ PORT: '0', DYNAMODB_PORT: '0', RELAY_DATA: 'memory', RELAY_SWEEP_GRACE: '0' }),
      environmentsMax: 4,
    },
    (line) => {
      const pid = /^environment chat#\d+ pid (\d+)$/.exec(line)?.[1];
      if (pid !== undefined) pids.add(Number(pid));
    },
  );
  const documents = DynamoDBDocumentClient.from(emulatorClient(stack.dynamodbEndpoint));
  try {
    return (await crash(stack, documents, pids)) ? 0 : 1;
  } finally {
    await stack.close();
  }
}

async function crash(
  stack: RunningStack,
  documents: DynamoDBDocumentClient,
  pids: Set<number>,
): Promise<boolean> {
  await prepare(documents);
  print(`1. An account is credited with 10 yuan.        ${await shown(documents)}`);

  const answer = await ask(stack, 'word '.repeat(400));
  const reader = answer.body?.getReader();
  for (let i = 0; i < 20; i += 1) await reader?.read();
  print(`2. A call streams; its cost is reserved.       ${await shown(documents)}`);

  for (const pid of pids) process.kill(pid, 'SIGKILL');
  const cut = await reader?.read().then(
    (turn) => turn.done,
    () => true,
  );
  print(
    `3. kill -9 of the function in mid-stream (pid ${[...pids].join(', ')}); the client's stream ${cut ? 'broke off' : 'ran out'}.`,
  );
  print(`   No process can settle it; nothing is lost.  ${await shown(documents)}`);

  print(`4. After the call's time limit (${requestSeconds} s here), the sweeper settles it.`);
  while ((await balanceOf(documents)).reserved > 0) {
    await sleep(500);
    await stack.runSchedules();
  }
  print(`   Input charged, the rest released.           ${await shown(documents)}`);

  await (await ask(stack, 'Are you still there?')).text();
  while ((await ledgerRows(documents)).length < 3) await sleep(100);
  print(`5. The next call is served by a new process.   ${await shown(documents)}`);
  print('6. The ledger, oldest first:');
  for (const row of await ledgerRows(documents))
    print(`   ${row.kind.padEnd(12)}${(row.model ?? '').padEnd(12)}${amountOf(row)}`);
  return report(await balanceOf(documents), await ledgerRows(documents));
}

/** Writes an account with a balance but no plan, a price for the demo model, and a short time limit. */
async function prepare(documents: DynamoDBDocumentClient): Promise<void> {
  const rows: [string, Record<string, unknown>][] = [
    ['settings', { name: 'limits', value: { request_seconds: requestSeconds } }],
    ['charges', { id: 0, type: 'token-billing', models: ['demo-chat'], input: 0.5, output: 1 }],
    ['keys', { ...buildKeyRow(key), account }],
    ['grants', { account, grant_id: 'start', amount: 10, reason: 'demo' }],
  ];
  for (const [table, Item] of rows)
    await documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  while ((await balanceOf(documents)).granted === 0) await sleep(50);
  // Functions reload the configuration within this time.
  await sleep(1000);
}

function ask(stack: RunningStack, text: string): Promise<Response> {
  return fetch(`${stack.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo-chat', stream: true, messages: [{ role: 'user', content: text }] }),
  });
}

async function balanceOf(documents: DynamoDBDocumentClient): Promise<Balance> {
  const { Item } = await documents.send(new GetCommand({ TableName: 'relay-quotas', Key: { account } }));
  const open = Object.values((Item?.['open'] as Record<string, unknown[]> | undefined) ?? {});
  return {
    available: Number(Item?.['available'] ?? 0),
    reserved: open.reduce((sum, [, amount]) => sum + Number(amount), 0),
    spent: Number(Item?.['spent'] ?? 0),
    granted: Number(Item?.['granted'] ?? 0),
  };
}

async function shown(documents: DynamoDBDocumentClient): Promise<string> {
  const { available, reserved, spent } = await balanceOf(documents);
  return `available ${yuan(available)}, reserved ${yuan(reserved)}, spent ${yuan(spent)}`;
}

/** Sorts by `at`: the query's order is by id, which puts the grant last although it came first. */
async function ledgerRows(documents: DynamoDBDocumentClient): Promise<LedgerLine[]> {
  const { Items = [] } = await documents.send(
    new QueryCommand({
      TableName: 'relay-ledger',
      KeyConditionExpression: 'account = :account',
      ExpressionAttributeValues: { ':account': account },
    }),
  );
  return (Items as LedgerLine[]).toSorted((a, b) => a.at.localeCompare(b.at));
}

const amountOf = ({ amount, charge }: LedgerLine): string =>
  charge === undefined ? `+${amount} yuan` : `-${charge} yuan`;

function report(end: Balance, rows: LedgerLine[]): boolean {
  const charged = rows.reduce((sum, { charge = 0 }) => sum + charge, 0);
  const balanced = end.available + end.reserved + end.spent === end.granted;
  const agrees = Math.round(charged * nanoPerYuan) === end.spent;
  print(
    `   granted ${yuan(end.granted)} = available ${yuan(end.available)} + spent ${yuan(end.spent)}: ${balanced ? 'yes' : 'NO'}`,
  );
  print(`   sum of the ledger's charges = spent: ${agrees ? 'yes' : 'NO'}`);
  return balanced && agrees;
}
