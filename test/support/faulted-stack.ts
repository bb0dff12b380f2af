import { ScanCommand } from '@aws-sdk/client-dynamodb';
import type { FaultProxy } from './fault-proxy.ts';
import { decodeQuota } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { startFaultedTables, sumOf, until } from './faulted-tables.ts';
import { startLocalStack } from './local-stack.ts';

const nano = 1_000_000_000;
const grantedYuan = 100_000;
const key = 'sk-faulted';

export interface Throttling {
  forMs: number;
  /** The share of all store calls that fail. */
  share: number;
}

interface FaultedAnswer {
  status: number;
  /** Seconds. NaN if the answer has none. */
  retryAfter: number;
}

export interface FaultedStack {
  store: FaultProxy;
  /** The store without faults. */
  endpoint: string;
  /** The charge of each answered call in nano-yuan. */
  price: number;
  /** The number of answered calls so far. */
  readonly answered: number;
  call(): Promise<FaultedAnswer>;
  /**
   * Callers continue during the outage. `askedSeconds` is the total time that each of four callers after it was asked to
   * wait until it was answered.
   */
  throttledFor(throttling: Throttling): Promise<{ statuses: Set<number>; askedSeconds: number[] }>;
  /** Resolves when no call is open. */
  untilClosed(): Promise<void>;
  /** The account's sums in nano-yuan. `charged` is the sum of its ledger rows, once these are written. */
  sums(): Promise<Record<'available' | 'spent' | 'granted' | 'charged', number>>;
  log(): string;
  stop(): Promise<void>;
}

/** `npm start` with a fault proxy before its store, a scripted upstream, and one funded account. */
export async function startFaultedStack(): Promise<FaultedStack> {
  const tables = await startFaultedTables(5);
  const { store, endpoint, client, put, rows } = tables;
  await put('charges', { id: 1, type: 'times-billing', models: ['m'], output: 1 });
  await put('keys', { hash: keyHash(key), account: 'acme', hint: 'sk-...ted' });
  const stack = await startLocalStack({ seed: 'none', env: { DYNAMODB_ENDPOINT: store.endpoint } });
  const parts = async () =>
    (await rows('quotas')).filter(({ account }) => String(account).startsWith('acme'));
  await put('grants', { account: 'acme', grant_id: 'first', amount: grantedYuan });
  await until(async () => sumOf(await parts(), 'granted') === grantedYuan * nano);
  let answered = 0;
  const call = async (): Promise<FaultedAnswer> => {
    const response = await fetch(`${stack.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await response.text();
    if (response.status === 200) answered += 1;
    return { status: response.status, retryAfter: Number(response.headers.get('retry-after') ?? NaN) };
  };
  /** Retries as the answer asks, until it succeeds. */
  const obedientCall = async (): Promise<number> => {
    for (let askedSeconds = 0; ;) {
      const { status, retryAfter } = await call();
      if (status === 200) return askedSeconds;
      askedSeconds += retryAfter;
      await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
    }
  };
  return {
    store,
    endpoint,
    price: nano,
    get answered() {
      return answered;
    },
    call,
    async throttledFor({ forMs, share }) {
      const statuses = new Set<number>();
      const ending = new AbortController();
      const callers = Array.from({ length: 4 }, async () => {
        while (!ending.signal.aborted) statuses.add((await call()).status);
      });
      store.rules.add({ fault: { kind: 'throttle' }, services: ['dynamodb'], share, forMs });
      await new Promise((resolve) => setTimeout(resolve, forMs));
      ending.abort();
      const askedSeconds = await Promise.all(Array.from({ length: 4 }, obedientCall));
      await Promise.all(callers);
      return { statuses, askedSeconds };
    },
    untilClosed: () =>
      until(async () => {
        const { Items = [] } = await client.send(
          new ScanCommand({ TableName: 'relay-quotas', ConsistentRead: true }),
        );
        // A tombstone against a late write stays for 30 s, and is not a call.
        return Items.every((item) =>
          [...decodeQuota(item).open.values()].every(({ tombstone }) => tombstone),
        );
      }),
    async sums() {
      const spent = sumOf(await parts(), 'spent');
      const charges = async (): Promise<number> =>
        Math.round(
          sumOf(
            (await rows('ledger')).filter(({ kind }) => kind === 'settled'),
            'charge',
          ) * nano,
        );
      await until(async () => (await charges()) >= spent);
      const images = await parts();
      return {
        spent,
        charged: await charges(),
        available: sumOf(images, 'available'),
        granted: sumOf(images, 'granted'),
      };
    },
    log: () => stack.stderr(),
    async stop() {
      await stack.stop();
      await tables.stop();
    },
  };
}
