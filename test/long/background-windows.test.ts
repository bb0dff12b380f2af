/**
 * Background windows on the running stack: a vendor accepts calls and finishes them at its own pace, while the polling function is
 * killed and store replies are lost. Each call must be charged once, by the vendor's counts. `RELAY_WINDOW_CALLS=20` shortens it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startFaultedTables, until, type Row } from '../support/faulted-tables.ts';
import { startLocalStack } from '../support/local-stack.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { keyHash, keyOf } from '../local/money-reader.ts';

const callsWanted = Number(process.env['RELAY_WINDOW_CALLS'] ?? 150);
const account = 'windowed';
const headers = { authorization: `Bearer ${keyOf(account)}`, 'content-type': 'application/json' };
const granted = 1_000_000;

type Fate = 'completed' | 'failed' | 'cancelled' | 'lost';

/** The vendor's record of a response. */
interface Taken {
  asked: number;
  /** The response ends after this many polls. */
  patience: number;
  fate: Fate;
  output: number;
}

const nanoOf = (yuan: unknown): bigint => BigInt(Math.round(Number(yuan) * 1e9));

it('are charged once, by their vendor’s counts, whatever dies', async () => {
  await using running = new AsyncDisposableStack();
  const tables = running.adopt(await startFaultedTables(7), (one) => one.stop());
  const random = new SeededRandom(7);
  const vendor = new Map<string, Taken>();
  const script: Script = ({ method, path, body }, reply) => {
    if (method === 'POST' && !path.endsWith('/cancel')) {
      if (body['background'] !== true || body['stream'] !== undefined) return reply.json(400, { error: {} });
      const id = `resp_${vendor.size}`;
      const fate = random.pick([
        'completed',
        'completed',
        'completed',
        'failed',
        'cancelled',
        'lost',
      ] as const);
      const taken = { asked: 0, patience: random.integer(1, 4), fate, output: random.integer(1, 60) };
      vendor.set(id, taken);
      return reply.json(200, { id, object: 'response', status: 'queued', background: true });
    }
    const [, id = ''] = /responses\/([^/?]+)/.exec(path) ?? [];
    const taken = vendor.get(id);
    if (!taken) return reply.json(404, { error: {} });
    taken.asked += 1;
    const status = taken.asked < taken.patience ? 'in_progress' : taken.fate;
    // At first a vendor may not find a response that it just accepted, so that must not end the run.
    if (status === 'lost') return reply.json(503, { error: {} });
    const content = [{ type: 'output_text', text: 'Hello', annotations: [] }];
    const isOver = status === 'completed' || status === 'cancelled';
    return reply.json(200, {
      id,
      object: 'response',
      status,
      background: true,
      background_options: { completion_window: '8h' },
      error: status === 'failed' ? { code: 'server_error', message: 'no' } : null,
      output: isOver
        ? [{ id: `msg_${id}`, type: 'message', role: 'assistant', status: 'completed', content }]
        : [],
      usage: isOver ? { input_tokens: 5, output_tokens: taken.output, total_tokens: 5 + taken.output } : null,
    });
  };
  tables.upstream.script(script);
  const channel = { id: 'main', type: 'openai', dialect: 'responses', endpoint: tables.upstream.endpoint };
  const params = { completion_windows: 'submit' };
  await tables.put('channels', { ...channel, models: ['m'], state: true, params });
  const factors = { service_tiers: { background_8h: 0.6 } };
  await tables.put('charges', {
    id: 1,
    type: 'token-billing',
    models: ['m'],
    input: 1,
    output: 2,
    ...factors,
  });
  await tables.put('keys', { hash: keyHash(account), account, store: true });
  await tables.put('grants', { account, grant_id: 'first', amount: granted });
  const env = { DYNAMODB_ENDPOINT: tables.store.endpoint, RELAY_SWEEP_GRACE: '1' };
  const stack = running.adopt(await startLocalStack({ seed: 'none', env }), (one) => one.stop());
  const parts = async () =>
    (await tables.rows('quotas')).filter(({ account: name }) => String(name).startsWith(account));
  const rowsOf = async () =>
    (await tables.rows('ledger')).filter(({ kind }) => kind !== 'grant' && kind !== 'cancelled');
  await until(async () => (await parts()).length > 0);

  const ids: string[] = [];
  const accept = async (): Promise<void> => {
    const options = { background: true, background_options: { completion_window: '8h' } };
    const body = JSON.stringify({ model: 'm', input: 'hi', max_output_tokens: 60, ...options });
    const response = await fetch(`${stack.baseUrl}/responses`, { method: 'POST', headers, body });
    const { id } = (await response.json()) as { id?: string };
    if (response.status === 200 && id !== undefined) ids.push(id);
  };
  await until(async () => {
    await accept();
    return ids.length > 0;
  });
  const ending = new AbortController();
  const killing = (async () => {
    for (let kills = 0; ;) {
      await sleep(3_000, undefined, { signal: ending.signal }).catch(() => {});
      if (ending.signal.aborted) return kills;
      const [pid] = stack.environmentPids('background');
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
      kills += 1;
    }
  })();
  tables.store.rules.add({
    fault: { kind: 'lost_reply' },
    services: ['dynamodb'],
    tables: ['quotas', 'responses'],
    share: 0.02,
  });
  const stored = async (id: string): Promise<string> => {
    const response = await fetch(`${stack.baseUrl}/responses/${id}`, { headers });
    return String(((await response.json()) as { status?: string }).status);
  };
  while (ids.length < callsWanted) {
    await Promise.all(Array.from({ length: 5 }, accept));
    process.kill(stack.pid, 'SIGUSR2');
  }
  const isOpen = ({ open }: Row): boolean =>
    Object.values((open ?? {}) as Record<string, unknown[]>).some((entry) => !String(entry[7]).includes('t'));
  const isLost = ({ waiting }: Row): boolean => {
    const run = JSON.parse(String(waiting)) as { vendor: { vendorId: string } };
    return vendor.get(run.vendor.vendorId)?.fate === 'lost';
  };
  const waitingOf = async () =>
    (await tables.rows('responses')).filter(({ account: name }) => name === '~waiting');
  await until(async () => {
    process.kill(stack.pid, 'SIGUSR2');
    await sleep(1_000);
    return (await waitingOf()).every(isLost);
  });
  ending.abort();
  const kills = await killing;
  tables.store.rules.clear();
  await until(async () => {
    // Its client deletes a response that no longer sends events.
    for (const { id } of (await waitingOf()).filter(isLost))
      await fetch(`${stack.baseUrl}/responses/${String(id)}`, { method: 'DELETE', headers });
    process.kill(stack.pid, 'SIGUSR2');
    await sleep(2_000);
    return !(await parts()).some(isOpen) && (await waitingOf()).length === 0;
  });
  const figure = (rows: Row[], name: string): bigint =>
    rows.reduce((sum, row) => sum + BigInt((row[name] ?? 0) as string | number), 0n);
  const spent = figure(await parts(), 'spent');
  expect(figure(await parts(), 'available') + spent).toBe(BigInt(granted) * 1_000_000_000n);
  await until(async () => (await rowsOf()).reduce((sum, row) => sum + nanoOf(row['charge']), 0n) === spent);

  const rows = await rowsOf();
  const settled = rows.filter(({ kind }) => kind === 'settled');
  /** 5 tokens of input and the vendor's output, for 60 %. */
  const due = new Set([...vendor.values()].map(({ output }) => BigInt(5 + 2 * output) * 600_000n));
  const wrong = settled.filter(
    (row) => !due.has(nanoOf(row['charge'])) || row['service_tier'] !== 'background_8h',
  );
  const kinds = Object.entries(Object.groupBy(rows, ({ kind }) => String(kind))).map(
    ([kind, of]) => `${of?.length} ${kind}`,
  );
  const statuses = Object.groupBy(await Promise.all(ids.map(stored)), (each) => each);
  console.log(
    `${ids.length} accepted, ${vendor.size} taken, ${kinds.join(', ')}, ${kills} kills; ` +
      Object.entries(statuses)
        .map(([each, of]) => `${of?.length} ${each}`)
        .join(', '),
  );
  expect(wrong).toEqual([]);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  const finished = [...vendor.values()].filter(({ fate }) => fate === 'completed' || fate === 'cancelled');
  expect(settled.length).toBeLessThanOrEqual(finished.length);
  // A run expires if it died after its vendor accepted the call and before its waiting state was stored.
  expect(settled.length).toBeGreaterThanOrEqual(finished.length - kills);
}, 1_800_000);
