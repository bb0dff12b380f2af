/**
 * Calls in background windows through the whole pipeline, in virtual time: vendors finish, fail, forget and fall
 * silent, clients cancel and delete, processes die at any store call, and replies are lost. The oracle recomputes the
 * charge of each.
 */
import { closeExpired } from '../../shared/billing/quota-item.ts';
import { CoreRig, demoKey, keyRow } from '../support/core-rig.ts';
import type { Fault } from '../support/rough-quota-store.ts';
import { Endings, type CallAsked, type Delivered } from '../oracle/endings.ts';
import type { ChargeText } from '../oracle/price-list.ts';
import { TransportError } from '../../shared/upstreams/exchange.ts';
import { makeMortal, processes } from './price-edits.ts';
import { SeededRandom } from './seeded-random.ts';

const path = '/v1/responses';
const granted = 1_000_000n * 1_000_000_000n;
const rule: ChargeText = {
  id: 1,
  type: 'token-billing',
  models: ['m'],
  input: 0.018,
  output: 0.072,
  service_tiers: { background_2h: 0.7, background_8h: 0.6 },
};

const fates = [
  'completed',
  'completed',
  'completed',
  'failed',
  'expired',
  'lost',
  'silent',
  'never',
] as const;

/** A response at the vendor. */
interface Taken {
  fate: (typeof fates)[number];
  endsMs: number;
  delivered: Delivered;
  isCancelled?: boolean;
}

interface Call {
  asked: CallAsked;
  taken?: Taken;
  isKept?: boolean;
  isLeft?: boolean;
  charged: bigint;
  kind?: string;
}

export interface WindowsRun {
  calls: number;
  /** Closes by kind. */
  closes: Record<string, number>;
  deaths: number;
  faults: number;
  wrong: string[];
  difference: bigint;
  open: number;
  waiting: number;
}

export async function runWindows(seed: number, count: number): Promise<WindowsRun> {
  const random = new SeededRandom(seed);
  const endings = new Endings([rule]);
  const calls = new Map<string, Call>();
  const byVendor = new Map<string, Call>();
  const result: WindowsRun = {
    calls: count,
    closes: {},
    deaths: 0,
    faults: 0,
    wrong: [],
    difference: 0n,
    open: 0,
    waiting: 0,
  };

  const responseOf = (vendorId: string, { taken }: Call): object => {
    const { fate, endsMs, delivered, isCancelled } = taken ?? {
      fate: 'lost',
      endsMs: 0,
      delivered: undefined,
    };
    const isOver = fate !== 'never' && rig.clock.now() >= endsMs;
    const ended = fate === 'silent' || fate === 'never' ? 'cancelled' : fate;
    const status = isOver ? ended : isCancelled ? 'cancelled' : 'in_progress';
    const { reported } = delivered ?? {};
    const counts = status === 'completed' ? reported : undefined;
    const content = [{ type: 'output_text', text: 'Hi', annotations: [] }];
    return {
      id: vendorId,
      object: 'response',
      status,
      background: true,
      background_options: delivered?.tier && { completion_window: delivered.tier.replace('background_', '') },
      service_tier: 'default',
      error: status === 'failed' ? { code: 'server_error', message: 'no' } : null,
      output:
        status === 'completed'
          ? [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]
          : [],
      usage: counts && { input_tokens: counts.input, output_tokens: counts.output },
    };
  };
  const rig: CoreRig = new CoreRig({
    channels: [{ type: 'openai', dialect: 'responses', params: { completion_windows: 'submit' } }],
    keys: { [demoKey]: { row: keyRow({ store: true }) } },
    charges: [rule as unknown as Record<string, unknown>],
    send: async ({ url, body }) => {
      await rig.clock.sleep(random.integer(0, 2_000));
      if (random.chance(0.1)) throw new TransportError('reset', 'reset');
      const [, vendorId, cancels] = /responses\/([^/?]+)(\/cancel)?/.exec(url) ?? [];
      if (vendorId === undefined) {
        const id = /call number (\w+)/.exec(body)?.[1] ?? '';
        const call = calls.get(id);
        if (!call) throw new TransportError('reset', 'nobody asked for it');
        const output = random.integer(2, 60);
        const tier = random.pick([undefined, undefined, 'background_2h', 'background_8h']);
        const reported = { input: 9, output };
        const delivered = {
          failed: false,
          anyContent: true,
          leftEarly: false,
          outputTokens: output,
          reported,
          tier,
        };
        const endsMs = rig.clock.now() + random.integer(0, 40) * 60_000;
        call.taken = { fate: random.pick(fates), endsMs, delivered };
        byVendor.set(`resp_${id}`, call);
        return replyOf(200, responseOf(`resp_${id}`, call));
      }
      const call = byVendor.get(vendorId);
      const isOver = rig.clock.now() >= (call?.taken?.endsMs ?? 0);
      if (call?.taken?.fate === 'silent') throw new TransportError('reset', 'silent');
      if (!call || (call.taken?.fate === 'lost' && isOver)) return replyOf(404, {});
      if (cancels && call.taken) call.taken.isCancelled = true;
      return replyOf(200, responseOf(vendorId, call));
    },
  });
  rig.quotas.grant('acme', granted);

  const close = rig.quotas.close.bind(rig.quotas);
  rig.quotas.close = async (write) => {
    const reply = await close(write);
    const call = calls.get(write.id);
    if (!reply.done || write.entry.tombstone || !call) return reply;
    const { kind, charge } = write.closeRecord;
    result.closes[kind] = (result.closes[kind] ?? 0) + 1;
    if (call.kind !== undefined) result.wrong.push(`${write.id} is closed twice`);
    Object.assign(call, { kind, charged: charge });
    if (charge > write.entry.amount) result.wrong.push(`${write.id} is charged above its hold`);
    return reply;
  };
  const chargeLate = rig.quotas.chargeLate.bind(rig.quotas);
  rig.quotas.chargeLate = async (late) => {
    await chargeLate(late);
    const call = calls.get(late.row.id.replace('late#', ''));
    const charged = [...rig.quotas.late.values()].find(({ row }) => row.id === late.row.id);
    if (call && charged === late) call.charged += late.difference;
  };
  const put = rig.stored.waiting.put.bind(rig.stored.waiting);
  rig.stored.waiting.put = async (run) => {
    await put(run);
    Object.assign(calls.get(run.id.replace('resp-', '')) ?? {}, { isKept: true });
  };
  const { responses, runs, waiting } = rig.stored;
  for (const store of [rig.store, responses, runs, waiting]) makeMortal(store, () => (result.deaths += 1));

  const faults: readonly [Fault, ...Fault[]] = [
    'lost',
    'lost',
    'dropped',
    'busy',
    { kind: 'late', afterMs: 3_000 },
  ];
  const disturb = (): void => {
    if (!random.chance(0.2)) return;
    rig.store.meets(random.pick(['reserve', 'close', 'renew'] as const), random.pick(faults));
    result.faults += 1;
  };
  const living = async (work: () => Promise<unknown>): Promise<void> => {
    const left = random.chance(0.15) ? random.integer(1, 12) : 100_000;
    await Promise.race([processes.run({ left }, work).catch(() => {}), rig.clock.sleep(90_000)]);
  };
  const over = new AbortController();
  const sweeping = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await rig.clock.sleep(60_000);
      for (const item of rig.quotas.items.values())
        for (const write of closeExpired(item, rig.clock.now() / 1000, 120)) await rig.quotas.close(write);
    }
  };
  const polling = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await rig.clock.sleep(60_000);
      disturb();
      await Promise.all(Array.from({ length: random.integer(1, 3) }, () => living(() => rig.polls())));
    }
  };
  const asking = async (): Promise<void> => {
    for (let number = 1; number <= count; number += 1) {
      const id = `01call${String(number).padStart(20, '0')}`;
      const hours = random.pick(['2h', '8h'] as const);
      const asked = {
        account: 'acme',
        key: 'k',
        model: 'm',
        official: false,
        tier: `background_${hours}`,
        startedMs: 0,
        inputTokens: 9,
      };
      const call: Call = { asked, charged: 0n };
      calls.set(id, call);
      const options = { background: true, background_options: { completion_window: hours } };
      const body = { model: 'm', input: `call number ${id}`, max_output_tokens: 60, ...options };
      await (
        await rig.respond(body, { path, id })
      ).done;
      disturb();
      await living(() => rig.runs({ id: `resp-${id}` }));
      await rig.clock.sleep(random.integer(0, 120_000));
      if (random.chance(0.2)) {
        call.isLeft = true;
        const leave = random.chance(0.5) ? 'cancel' : 'remove';
        await (leave === 'cancel'
          ? runs.cancel('acme', `resp-${id}`)
          : responses.remove('acme', `resp-${id}`));
      }
    }
  };
  const beside = [sweeping(), polling()];
  await rig.clock.run(asking());
  await rig.clock.run(rig.clock.sleep(10 * 3_600_000));
  over.abort();
  await rig.clock.run(Promise.all(beside));

  for (const [id, call] of calls) {
    const what = wrongWith(endings, call);
    if (what !== undefined) result.wrong.push(`${id} ${what}`);
  }
  const items = [...rig.quotas.items.values()];
  const isCall = ({ tombstone }: { tombstone: boolean }): boolean => !tombstone;
  const sum = (of: 'available' | 'spent'): bigint => items.reduce((total, item) => total + item[of], 0n);
  result.open = items.reduce((total, item) => total + [...item.open.values()].filter(isCall).length, 0);
  result.difference = granted - sum('available') - sum('spent');
  result.waiting = (await rig.stored.waiting.list()).length;
  const charged = [...calls.values()].reduce((total, call) => total + call.charged, 0n);
  if (charged !== sum('spent'))
    result.wrong.push(`spent ${sum('spent')}, but the calls are charged ${charged}`);
  return result;
}

/** Compares a call's last charge with the oracle, and returns the difference. */
function wrongWith(
  endings: Endings,
  { asked, taken, isKept, isLeft, charged, kind }: Call,
): string | undefined {
  if (kind === undefined) return taken ? 'has no close, but a vendor took it' : undefined;
  const expired = endings.window(asked, 'unknown', { ...nobody, reported: undefined });
  const isInput = charged >= expired.least && charged <= expired.most;
  if (!taken)
    return charged === 0n || (kind === 'expired' && isInput)
      ? undefined
      : `is charged ${charged}, and nobody took it`;
  const finished = endings.window(asked, 'finished', taken.delivered);
  const isFinished = charged >= finished.least && charged <= finished.most;
  // A response that its client left, or that died before its waiting was stored, may end in any of these ways.
  if (isLeft || !isKept) return charged === 0n || isInput || isFinished ? undefined : `is charged ${charged}`;
  if (taken.fate === 'completed')
    return isFinished ? undefined : `is charged ${charged} (${kind}), not ${finished.least}`;
  if (taken.fate === 'silent') return isInput ? undefined : `is charged ${charged} (${kind}), not its input`;
  return charged === 0n
    ? undefined
    : `is charged ${charged} (${kind}), though its vendor gave nothing (${taken.fate})`;
}

const nobody = { failed: false, anyContent: false, leftEarly: false, outputTokens: 0 };

function replyOf(status: number, body: object) {
  async function* once(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode(JSON.stringify(body));
  }
  return { status, headers: { 'content-type': 'application/json' }, body: once() };
}
