import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { keyOf, MoneyReader, until, type TableRow } from './money-reader.ts';

/** A running stack for test files that need different accounts, but the same channels and prices. */
export interface AccountsStack {
  stack: WatchedStack;
  upstream: ScriptedUpstream;
  /** In front of the stack. The channel `mirror` leads to it. */
  alias: Alias;
  money: MoneyReader;
  stop(): Promise<void>;
}

/** Calls at once, each in a process. An account is split when more than 8 of its calls are open. */
export const crowd = 10;
export const dialects = ['chat', 'responses', 'messages'] as const;
/** Yuan per 1,000 tokens of the models `chat`, `responses`, `messages` and `claude`. */
export const [inputPrice, outputPrice] = [0.018, 0.072];

let running: Promise<AccountsStack> | undefined;

/** Adds these rows to the one stack of all files, which run one after another, and waits for the balances. */
export async function accountsStack(rows: TableRow[]): Promise<AccountsStack> {
  running ??= startAccountsStack();
  const { stack, upstream, money } = await running;
  await Promise.all(
    rows.map(([table, Item]) =>
      stack.store.documents.send(new PutCommand({ TableName: physicalNameOf('relay', table), Item })),
    ),
  );
  const granted = rows.flatMap(([table, { account }]) => (table === 'grants' ? [String(account)] : []));
  await until(async () => {
    const accounts = await money.accounts();
    return granted.every((account) => accounts.has(account));
  });
  upstream.forget();
  return running;
}

let isShared = false;

/** From now on the stack also runs while no file uses it. */
export function shareAccountsStack(): void {
  isShared = true;
}

/** To be called after each file. */
export async function leaveAccountsStack(): Promise<void> {
  if (!isShared) await stopAccountsStack();
}

export async function stopAccountsStack(): Promise<void> {
  const started = await running?.catch(() => undefined);
  running = undefined;
  isShared = false;
  await started?.stop();
}

async function startAccountsStack(): Promise<AccountsStack> {
  await using started = new AsyncDisposableStack();
  const upstream = started.adopt(await startScriptedUpstream(), (one) => one.close());
  const alias = started.adopt(await startAlias(), ({ server }) => void server.close());
  const { port } = alias.server.address() as AddressInfo;
  const channel = { endpoint: upstream.endpoint, state: true };
  const charge = { type: 'token-billing', input: 0.1, output: 0.2 };
  const options = {
    environmentsMax: crowd,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0', MIRROR_KEY: keyOf('mirrored') },
    rows: [
      ...dialects.map((dialect): TableRow => [
        'channels',
        { ...channel, id: dialect, dialect, models: [dialect] },
      ]),
      ['channels', { ...channel, id: 'claude', type: 'anthropic', models: ['claude'] }],
      ['channels', { ...channel, id: 'plain', models: ['plain'] }],
      ['channels', { ...channel, id: 'strict', models: ['strict'] }],
      ['channels', { ...channel, id: 'money', models: ['metered', 'per-call'] }],
      [
        'channels',
        {
          id: 'mirror',
          endpoint: `http://127.0.0.1:${port}/v1`,
          secret: 'env:MIRROR_KEY',
          state: true,
          models: ['mirror'],
        },
      ],
      [
        'charges',
        { ...charge, id: 10, models: [...dialects, 'claude'], input: inputPrice, output: outputPrice },
      ],
      ['charges', { ...charge, id: 11, models: ['plain', 'strict', 'mirror'] }],
      [
        'charges',
        {
          ...charge,
          id: 12,
          models: ['metered'],
          input: 1,
          output: 2,
          service_tiers: { flex: 0.5, priority: 2 },
        },
      ],
      ['charges', { id: 13, type: 'times-billing', models: ['per-call'], output: 1 }],
      ['plans', { level: 3, price: 9, items: [{ id: 'calls', value: 2, models: ['per-call'] }] }],
      // Limits the lease of a killed call.
      ['settings', { name: 'limits', value: { request_seconds: 12 } }],
    ] satisfies TableRow[],
  };
  const stack = started.adopt(await startWatchedStack(options), (one) => one.stop());
  alias.toPort = Number(new URL(stack.origin).port);
  const all = started.move();
  return { stack, upstream, alias, money: new MoneyReader(stack), stop: () => all.disposeAsync() };
}

/** An unknown name of the relay, like another domain in front of it. */
interface Alias {
  server: Server;
  /** The number of connections so far. */
  passed: number;
  toPort: number;
}

async function startAlias(): Promise<Alias> {
  const alias = { server: createServer(), passed: 0, toPort: 0 };
  alias.server.on('connection', (socket) => {
    alias.passed += 1;
    const relay = connect(alias.toPort, '127.0.0.1');
    for (const one of [socket, relay]) one.on('error', () => {});
    socket.pipe(relay).pipe(socket);
  });
  await once(alias.server.listen(0, '127.0.0.1'), 'listening');
  return alias;
}
