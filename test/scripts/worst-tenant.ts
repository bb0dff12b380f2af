/**
 * Measures an honest tenant beside one that does its worst, on the running local stack: how many of its calls succeed, and
 * p50 and p99 of their time, against a control with the same use of the CPU by the calls of another ordinary tenant. Prints the figures and asserts
 * nothing. The upstream takes 200 ms to its first word.
 *
 *   npm run build && npm run app && node test/scripts/worst-tenant.ts [seconds a phase] [rounds] [limit of calls at once, 0: none]
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { keyOf, rowsOfAccount } from '../local/money-reader.ts';
import { rawPost } from '../hardening/raw-client.ts';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import { emulatorClient } from '../support/emulator.ts';
import { startLocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { firstWord, worstUpstream } from '../support/worst-upstream.ts';

const latencyMs = 200;
const hostileStreams = 120;
const honestAtOnce = 3;
const honestPauseMs = 50;
const hangMs = 20_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const body = (word: string, more: object = {}): string =>
  JSON.stringify({ model: 'single', max_tokens: 100, messages: [{ role: 'user', content: word }], ...more });
const call = async (origin: string, account: string, text: string): Promise<number> => {
  const headers = { authorization: `Bearer ${keyOf(account)}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: text, signal: AbortSignal.timeout(60_000) };
  const answer = await fetch(`${origin}/v1/chat/completions`, init);
  await answer.text();
  return answer.status;
};

/** What the bad tenant does at once, over and over: it waits a little after a refusal, as clients do that repeat. */
const attacks: readonly string[] = [
  ...Array.from({ length: 40 }, () => 'hang'),
  'context',
  'policy',
  'crash',
  'close',
  'empty',
  'gateway',
  'overloaded',
  'inside',
  'name',
  'limit',
  'logprobs',
  'flood',
  'giant',
  'deep',
  'stalled',
  'stalled',
  'stalled',
  'stalled',
  'absurd',
  'absurd',
];
const giant = body('x'.repeat(3_900_000));
const bodies: Readonly<Record<string, string>> = {
  giant,
  deep: '['.repeat(1_000_000),
  absurd: body('hello', { n: 8, max_tokens: 1e9, logprobs: true, top_logprobs: 20 }),
};

function stalls(origin: string, account: string): Promise<number> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  socket.write(rawPost(keyOf(account), { body: body('long', { stream: true, max_tokens: 1_000_000 }) }));
  return new Promise((resolve) => {
    socket.once('close', () => resolve(0));
    socket.once('data', (head) => {
      socket.pause();
      const status = Number(head.toString('latin1').slice(9, 12));
      setTimeout(() => socket.destroy(), status === 200 ? 45_000 : 0);
      if (status !== 200) resolve(status);
    });
  });
}

/** A caller with two accounts. Runs until its process is ended. */
async function attack(origin: string): Promise<void> {
  const seen: Record<string, number> = {};
  process.on('message', () => process.send?.(seen));
  const one = async (at: number): Promise<void> => {
    const what = attacks[at % attacks.length] ?? '';
    for (;;) {
      const account = at % 2 === 0 ? 'hostile' : 'hostile-twin';
      const text = bodies[what] ?? body(what, { stream: true, max_tokens: 1_000_000 });
      const done = what === 'stalled' ? stalls(origin, account) : call(origin, account, text);
      const status = await done.catch(() => 0);
      const key = status === 0 ? 'no answer' : String(status);
      seen[key] = (seen[key] ?? 0) + 1;
      await pause(1000);
    }
  };
  await Promise.all(Array.from({ length: hostileStreams }, (_, at) => one(at)));
}

/** Another tenant that only calls, so often a second in all. */
async function benign(origin: string, callsASecond: number): Promise<void> {
  for (;;) {
    void call(origin, 'benign', body('hello', { stream: true })).catch(() => 0);
    await pause(1000 / callsASecond);
  }
}

interface Figures {
  calls: number;
  served: number;
  ms: number[];
  cpuSeconds: number;
}

async function honest(origin: string, seconds: number, pids: () => number[]): Promise<Figures> {
  const figures: Figures = { calls: 0, served: 0, ms: [], cpuSeconds: 0 };
  const before = cpuOf(pids());
  const endMs = performance.now() + seconds * 1000;
  const one = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const status = await call(origin, 'honest', body('hello', { stream: true })).catch(() => 0);
      figures.ms.push(performance.now() - startMs);
      figures.calls += 1;
      if (status === 200) figures.served += 1;
      await pause(honestPauseMs);
    }
  };
  await Promise.all(Array.from({ length: honestAtOnce }, one));
  figures.cpuSeconds = cpuOf(pids()) - before;
  return figures;
}

/** Seconds of CPU that the processes and all that they started have used. */
function cpuOf(roots: readonly number[]): number {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ')
          .map(Number);
        const [, parent = 0] = fields;
        return [
          {
            pid: Number(name),
            parent,
            ticks: [11, 12, 13, 14].reduce((sum, at) => sum + (fields[at] ?? 0), 0),
          },
        ];
      } catch {
        return [];
      }
    });
  const inside = new Set(roots);
  for (let grown = -1; grown !== inside.size;) {
    grown = inside.size;
    for (const { pid, parent } of all) if (inside.has(parent)) inside.add(pid);
  }
  return all.filter(({ pid }) => inside.has(pid)).reduce((sum, { ticks }) => sum + ticks, 0) / 100;
}

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? NaN;
const line = (name: string, { calls, served, ms, cpuSeconds }: Figures, seconds: number): string =>
  `${name.padEnd(8)} ${served} of ${calls} served, p50 ${quantile(ms, 0.5).toFixed(0)} ms, p99 ${quantile(ms, 0.99).toFixed(0)} ms, ` +
  `${(cpuSeconds / seconds).toFixed(2)} cores`;

const helper = (...more: string[]): ChildProcess => fork(import.meta.filename, more);
const end = async (child: ChildProcess): Promise<void> => {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
};

async function measure(seconds: number, rounds: number, limit: number): Promise<void> {
  const upstream = helper('upstream');
  const [endpoint] = (await once(upstream, 'message')) as [string];
  const stack = await startLocalStack({ seed: 'none' });
  const origin = new URL(stack.baseUrl).origin;
  const client = emulatorClient(stack.dynamodbEndpoint);
  const documents = DynamoDBDocumentClient.from(client);
  const rows: [string, Record<string, unknown>][] = [
    ['channels', { id: 'only', endpoint, models: ['single'], state: true }],
    ['charges', { id: 10, type: 'token-billing', models: ['single'], input: 0.000_1, output: 0.000_2 }],
    ...(limit > 0
      ? [
          ['settings', { name: 'limits', value: { account_concurrency: limit } }] as [
            string,
            Record<string, unknown>,
          ],
        ]
      : []),
    ...['hostile', 'hostile-twin', 'honest', 'benign'].flatMap((account) =>
      rowsOfAccount(account, 1_000_000),
    ),
  ];
  rows.push(['accounts', { account: 'benign', concurrency: 1000 }]);
  for (const [table, Item] of rows)
    await documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  print(
    `${hostileStreams} hostile clients, ${limit > 0 ? `account_concurrency ${limit}` : 'no limit'}, ${honestAtOnce} honest ones, upstream ${latencyMs} ms`,
  );
  while ((await call(origin, 'honest', body('hello'))) !== 200) await pause(500);
  const alone = await honest(origin, seconds, () => [stack.pid, upstream.pid ?? 0]);
  print(line('alone', alone, seconds));
  const all: Record<'attack' | 'control', Figures[]> = { attack: [], control: [] };
  for (let round = 0; round < rounds; round += 1) {
    const bad = helper('attack', origin);
    await pause(8000);
    const attacked = await honest(origin, seconds, () => [stack.pid, upstream.pid ?? 0, bad.pid ?? 0]);
    bad.send('report');
    const [seen] = (await once(bad, 'message')) as [Record<string, number>];
    await end(bad);
    print(`${line('attack', attacked, seconds)}; hostile calls by status ${JSON.stringify(seen)}`);
    // A function does not learn that its client has gone: its calls end with the upstream.
    await pause(hangMs + 5000);
    const wanted = attacked.cpuSeconds / seconds;
    let rate = Math.max(
      1,
      ((attacked.cpuSeconds - alone.cpuSeconds) / alone.cpuSeconds) * (alone.calls / seconds),
    );
    let other = helper('benign', origin, String(rate));
    const control = async (forSeconds: number): Promise<Figures> => {
      await pause(2000);
      return honest(origin, forSeconds, () => [stack.pid, upstream.pid ?? 0, other.pid ?? 0]);
    };
    // The more calls there are, the less each of them costs: the rate is corrected until it uses the CPU of the attack.
    for (let trial = 0; trial < 3; trial += 1) {
      const trialSeconds = 6;
      const used = (await control(trialSeconds)).cpuSeconds / trialSeconds;
      await end(other);
      const own = alone.cpuSeconds / seconds;
      rate *= Math.min(3, Math.max(0.3, (wanted - own) / Math.max(0.05, used - own)));
      other = helper('benign', origin, String(rate));
    }
    const calm = await control(seconds);
    await end(other);
    print(`${line('control', calm, seconds)}; ${rate.toFixed(0)} other calls a second`);
    all.attack.push(attacked);
    all.control.push(calm);
  }
  const p = (name: 'attack' | 'control', part: number): number =>
    quantile(
      all[name].flatMap(({ ms }) => ms),
      part,
    );
  for (const part of [0.5, 0.99])
    print(
      `p${part * 100} of all rounds: attack ${p('attack', part).toFixed(0)} ms, control ${p('control', part).toFixed(0)} ms, ratio ${(p('attack', part) / p('control', part)).toFixed(2)}`,
    );
  client.destroy();
  await end(upstream);
  await stack.stop();
}

async function serve(): Promise<void> {
  const upstream = await startScriptedUpstream();
  const usual = worstUpstream(latencyMs);
  upstream.script(async (request, reply) => {
    if (firstWord(request) !== 'hang') return usual(request, reply);
    await pause(hangMs);
    reply.reset();
  });
  setInterval(() => upstream.forget(), 1000);
  process.send?.(upstream.endpoint);
}

const [role = '', ...more] = process.argv.slice(2);
if (role === 'upstream') await serve();
else if (role === 'attack') await attack(more[0] ?? '');
else if (role === 'benign') await benign(more[0] ?? '', Number(more[1]));
else await measure(Number(role || 30), Number(more[0] ?? 2), Number(more[1] ?? 4));
