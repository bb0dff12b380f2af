import { afterAll } from 'vitest';
import { findFreePort } from '../../infra/local/host/loopback.ts';
import type { TableName } from '../../shared/tables/table-names.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { canaries } from './canaries.ts';
import { startRawUpstream, type RawUpstream } from './raw-upstream.ts';
import { startCountedStack, type CountedStack } from './watched-stack.ts';

/** A running stack with one process of each function, and upstreams that the test scripts. */
export interface HardeningStack {
  upstream: ScriptedUpstream;
  /** The upstream of channels of kind `raw`. */
  raw: RawUpstream;
  stack: CountedStack;
  stop(): Promise<void>;
}

export type ChannelKind =
  | 'plain'
  | 'patient'
  | 'quick'
  | 'raw'
  | 'refusing'
  | 'no-tls'
  | 'no-handshake'
  | 'no-secret'
  | 'broken-secret';

/** A few more channels than the tests use: each change of a row publishes all of them. */
const channelsOf: Partial<Record<ChannelKind, number>> = { patient: 48, quick: 12, raw: 20 };

const taken = new Map<ChannelKind, number>();

/**
 * Returns a model on a separate channel, because a channel is cooled down after three failures or a rejected secret. `plain` always
 * has the same channel: each of its good answers resets its failures.
 */
export function modelOf(kind: ChannelKind): string {
  if (kind === 'plain') return kind;
  const number = taken.get(kind) ?? 0;
  taken.set(kind, number + 1);
  return `${kind}-${number}`;
}

let running: Promise<HardeningStack> | undefined;

/** One stack for all files of this folder, which run one after another. */
export async function hardeningStack(): Promise<HardeningStack> {
  running ??= startHardeningStack();
  const { upstream } = await running;
  upstream.forget();
  upstream.script(textStream('Hello there.'));
  return running;
}

/** At the end of the file that imports this: `hardening.test.ts`, or one that the command names. */
afterAll(async () => {
  const started = await running?.catch(() => undefined);
  running = undefined;
  await started?.stop();
});

async function startHardeningStack(): Promise<HardeningStack> {
  await using started = new AsyncDisposableStack();
  const upstream = started.adopt(await startScriptedUpstream(), (one) => one.close());
  const raw = started.adopt(await startRawUpstream(), (one) => one.stop());
  const closed = await findFreePort('127.0.0.1');
  const { endpoint } = upstream;
  const secret = 'env:UPSTREAM_SECRET';
  const kinds: Record<Exclude<ChannelKind, 'plain'>, Record<string, unknown>> = {
    patient: { endpoint, secret },
    quick: { endpoint, secret, first_content_seconds: 0.4, idle_seconds: 0.4, total_seconds: 1.2 },
    raw: { endpoint: `http://${raw.address}/v1` },
    refusing: { endpoint: `http://127.0.0.1:${closed}/v1`, secret },
    'no-tls': { endpoint: endpoint.replace('http:', 'https:') },
    'no-handshake': { endpoint: `https://${raw.address}/v1`, connect_seconds: 0.3 },
    'no-secret': { endpoint, secret: `env:${canaries.secret}` },
    'broken-secret': { endpoint, secret: 'env:BROKEN' },
  };
  const channels = [
    { id: 'scripted', endpoint, secret, models: ['plain', 'constructor', '__proto__'] },
    { id: 'claude', type: 'anthropic', endpoint, models: ['claude'] },
    ...Object.entries(kinds).flatMap(([kind, row]) =>
      Array.from({ length: channelsOf[kind as ChannelKind] ?? 4 }, (_, at) => ({
        ...row,
        id: `${kind}-${at}`,
        models: [`${kind}-${at}`],
      })),
    ),
  ];
  const models = channels.flatMap((channel) => channel.models);
  const options = {
    environmentsMax: 1,
    functionEnvironment: { UPSTREAM_SECRET: canaries.secret, BROKEN: 'two\nlines' },
    rows: [
      ...channels.map((row): [TableName, Record<string, unknown>] => ['channels', { ...row, state: true }]),
      // Without a price each channel would get a warning, and each warning is a change of a row.
      ['charges', { id: 10, type: 'token-billing', models, input: 0, output: 0 }],
      ['keys', { hash: keyHash(canaries.key), account: 'acme', hint: 'sk-...789' }],
    ] satisfies [TableName, Record<string, unknown>][],
  };
  const stack = started.adopt(await startCountedStack(options), (one) => one.stop());
  const all = started.move();
  return { upstream, raw, stack, stop: () => all.disposeAsync() };
}
