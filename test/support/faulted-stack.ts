import { startStore, tableOf, type Store, type StoreCall } from '../hardening/counted-store.ts';
import { startWatchedStackOn, type WatchedStack } from '../hardening/watched-stack.ts';
import { keyOf, MoneyReader, nano, rowsOfAccount, until } from '../local/money-reader.ts';
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts';
import { sumOf } from './faulted-tables.ts';
import { startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts';

const account = 'acme';
const grantedYuan = 100_000;
const callers = 4;

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

export interface FaultedStack extends Pick<WatchedStack, 'post' | 'logged'> {
  store: FaultProxy;
  /** The functions' requests to the store so far. */
  calls: StoreCall[];
  upstream: ScriptedUpstream;
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

/** The stack with a fault proxy before its store, a scripted upstream, and one funded account. */
export async function startFaultedStack(): Promise<FaultedStack> {
  await using started = new AsyncDisposableStack();
  const upstream = started.adopt(await startScriptedUpstream(), (running) => running.close());
  const stack = started.adopt(
    await startWatchedStackOn(startFaultedStore, {
      environmentsMax: callers,
      functionEnvironment: { RELAY_SEED: 'none' },
      rows: [
        ['channels', { id: 'main', endpoint: upstream.endpoint, models: ['m', 'metered'], state: true }],
        ['charges', { id: 1, type: 'times-billing', models: ['m'], output: 1 }],
        ['charges', { id: 2, type: 'token-billing', models: ['metered'], input: 1, output: 2 }],
        ...rowsOfAccount(account, grantedYuan),
        ...rowsOfAccount('warm', 100),
      ],
    }),
    (running) => running.stop(),
  );
  const money = new MoneyReader(stack);
  await until(async () => (await money.accounts()).get(account)?.granted === grantedYuan * nano);
  let answered = 0;
  const call = async (): Promise<FaultedAnswer> => {
    const response = await stack.post(
      { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
      { headers: { authorization: `Bearer ${keyOf(account)}` } },
    );
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
  const running = started.move();
  return {
    post: (...call) => stack.post(...call),
    logged: (id) => stack.logged(id),
    upstream,
    store: stack.store.faults,
    calls: stack.store.calls,
    endpoint: stack.store.faultless,
    price: nano,
    get answered() {
      return answered;
    },
    call,
    async throttledFor({ forMs, share }) {
      const statuses = new Set<number>();
      const ending = new AbortController();
      const calling = Array.from({ length: callers }, async () => {
        while (!ending.signal.aborted) statuses.add((await call()).status);
      });
      const fault = { kind: 'throttle' } as const;
      stack.store.faults.rules.add({ fault, services: ['dynamodb'], share, forMs });
      await new Promise((resolve) => setTimeout(resolve, forMs));
      ending.abort();
      const askedSeconds = await Promise.all(Array.from({ length: callers }, obedientCall));
      await Promise.all(calling);
      return { statuses, askedSeconds };
    },
    untilClosed: async () => void (await money.settled(account)),
    async sums() {
      const { spent, available, granted } = await money.account(account);
      const charges = async (): Promise<number> =>
        Math.round(sumOf(await money.ledger(account, answered), 'charge') * nano);
      await until(async () => (await charges()) >= spent);
      return { spent, charged: await charges(), available, granted };
    },
    log: () => stack.lines.join('\n'),
    stop: () => running.disposeAsync(),
  };
}

interface FaultedStore extends Store {
  calls: StoreCall[];
  faults: FaultProxy;
  /** The store without faults. */
  faultless: string;
}

async function startFaultedStore(): Promise<FaultedStore> {
  const store = await startStore();
  const calls: StoreCall[] = [];
  const faults = await startFaultProxy({
    upstream: store.endpoint,
    seed: 5,
    refuse({ headers }, body) {
      calls.push({ action: String(headers['x-amz-target']).split('.')[1] ?? '', table: tableOf(body) });
      return undefined;
    },
  });
  return {
    ...store,
    endpoint: faults.endpoint,
    calls,
    faults,
    faultless: store.endpoint,
    async stop() {
      await faults.close();
      await store.stop();
    },
  };
}
