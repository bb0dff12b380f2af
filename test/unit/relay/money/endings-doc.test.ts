import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { closeExpired, type CloseRecord } from '../../../../shared/billing/quota-item.ts';
import {
  BillingRig,
  byCall,
  byTokens,
  small,
  yuan,
  type BillingOptions,
} from '../../../support/billing-rig.ts';
import {
  delta,
  done,
  finish,
  hang,
  hello,
  reset,
  usage,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const page = readFileSync(new URL('../../../../docs/billing.md', import.meta.url), 'utf8');
const table = page.slice(page.indexOf('| what happened'), page.indexOf('**If you disconnect,**'));
const rows = table
  .split('\n')
  .slice(2)
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').map((column) => column.trim()));

interface Ending {
  scripts: UpstreamScript[];
  body?: object;
  channels?: Record<string, unknown>[];
  leaveAfter?: number;
  /** The charge by tokens, in thousandths: 1 for a token of input, 2 for one of output. */
  milli: bigint;
  /** Ends the call other than by its answer. */
  act?: (rig: BillingRig) => Promise<void>;
}

const stream = { ...small, stream: true };
const two = [
  { id: 'first', priority: 2 },
  { id: 'second', endpoint: 'https://other.test/v1' },
];
const slow = [50_000, delta('a'), finish(), usage(7, 2), done];
const counts = (input: number, output: number): UpstreamScript[] => [
  { steps: [delta('a'), finish(), usage(input, output), done] },
];

/** A reservation that only the sweeper closes. */
async function crash(rig: BillingRig): Promise<void> {
  rig.store.always('dropped', 'close');
  await rig.call(stream);
  const until = (rig.open[0]?.until ?? 0) + 1;
  for (const write of rig.item ? closeExpired(rig.item, until, 0) : []) await rig.quotas.close(write);
}

async function loseReserve(rig: BillingRig): Promise<void> {
  rig.store.always('dropped', 'reserve', 'close');
  await rig.call(stream);
  const until = (rig.open[0]?.until ?? 0) + 1;
  for (const write of rig.item ? closeExpired(rig.item, until, 0) : []) await rig.quotas.close(write);
}

const later = { model: 'm', input: 'hi', max_output_tokens: 78, background: true };
const path = '/v1/responses';
const id = 'resp-01call00000000000000000001';

async function neverBegin(rig: BillingRig): Promise<void> {
  await rig.call(later, { path });
  await rig.clock.run(rig.clock.sleep(70_000));
  await rig.clock.run(rig.runs());
}

async function cancelWaiting(rig: BillingRig): Promise<void> {
  await rig.call(later, { path });
  const cancelling = rig.respond({}, { path: `${path}/${id}/cancel` });
  const { status, done } = await rig.clock.run(cancelling);
  await rig.clock.run(done);
  expect(status).toBe(200);
}

async function deleteRunning(rig: BillingRig): Promise<void> {
  await rig.call(later, { path });
  const run = rig.runs();
  await rig.clock.run(rig.clock.sleep(5_000));
  await rig.stored.responses.remove('acme', id);
  await rig.clock.run(run);
}

/** 7 tokens in and 2 out are 11; an estimate has 5 in and 1 out. */
const endings: Record<string, Ending> = {
  'a complete answer': { scripts: [{ steps: hello }], milli: 11n },
  'a complete but empty answer': { scripts: [{ steps: [finish('length'), usage(7, 0), done] }], milli: 7n },
  'a complete answer without counts': { scripts: [{ steps: [delta('a'), finish(), done] }], milli: 7n },
  'a complete answer with counts of zero': { scripts: counts(0, 0), milli: 7n },
  'a complete answer with impossible counts': { scripts: counts(1e12, -1), milli: 7n },
  'a complete answer with one impossible count': { scripts: counts(7, 1e12), milli: 9n },
  'the call used more than was reserved': { scripts: counts(40, 140), milli: 320n },
  'you disconnect before any content': {
    scripts: [{ steps: slow }],
    body: stream,
    leaveAfter: 1,
    milli: 11n,
  },
  'you disconnect in mid-stream': {
    scripts: [{ steps: [delta('a'), 10, delta('b'), finish(), usage(7, 2), done] }],
    body: stream,
    leaveAfter: 1,
    milli: 11n,
  },
  'you disconnect before a JSON answer is complete': {
    scripts: [{ steps: slow }],
    leaveAfter: 1,
    milli: 11n,
  },
  'a stream breaks off after content, with counts': {
    scripts: [{ steps: [delta('a'), usage(7, 2), reset] }],
    body: stream,
    milli: 11n,
  },
  'a stream breaks off after content, without counts': {
    scripts: [{ steps: [delta('eight chars'), reset] }],
    body: stream,
    milli: 9n,
  },
  'a JSON answer breaks off, another provider answers': {
    scripts: [{ steps: [delta('eight chars'), usage(70, 20), reset] }, { steps: hello }],
    channels: two,
    milli: 11n,
  },
  'a JSON answer breaks off, no provider answers': {
    scripts: [{ steps: [delta('a'), usage(7, 2), reset] }],
    channels: two,
    milli: 0n,
  },
  'a failure, refusal or time-out before any content': {
    scripts: [{ steps: [usage(7, 2), reset] }],
    milli: 0n,
  },
  'the relay refuses the request (4xx)': { scripts: [], body: { ...small, n: 0 }, milli: 0n },
  "the relay's function crashes during the call": { scripts: [{ steps: hello }], act: crash, milli: 5n },
  'a background response never begins': { scripts: [{ steps: hello }], act: neverBegin, milli: 0n },
  'a background response is cancelled before it begins': {
    scripts: [{ steps: hello }],
    act: cancelWaiting,
    milli: 0n,
  },
  '... while it runs, or after its 14 minutes': {
    scripts: [{ steps: [delta('a'), hang] }],
    channels: [{ idle_seconds: 900 }],
    act: deleteRunning,
    milli: 7n,
  },
  'the outcome of the reservation is unknown': { scripts: [{ steps: hello }], act: loseReserve, milli: 0n },
};

/** Each call asks for a web search, which finds nothing. */
class SearchRig extends BillingRig {
  constructor(options: BillingOptions) {
    const search = { type: 'tavily', endpoint: 'https://search.test', results: 5, price: 0.08 } as const;
    super({ ...options, settings: { search }, search: () => Promise.resolve([]) });
  }

  override call(body: object, options?: Parameters<BillingRig['call']>[1]): ReturnType<BillingRig['call']> {
    return super.call({ ...body, model: 'web-m' }, options);
  }
}

async function endOf(ending: Ending, options: BillingOptions, Rig = BillingRig): Promise<BillingRig> {
  const { scripts, body = small, channels, leaveAfter, act } = ending;
  const rig = new Rig({ key: { store: true }, ...options, ...(channels && { channels }) })
    .upstream(...scripts)
    .granted(10n * yuan);
  if (act) await act(rig);
  else await rig.call(body, leaveAfter === undefined ? {} : { leaveAfter });
  return rig;
}

const said = (last: CloseRecord | undefined): string => {
  const words = [last?.kind, last?.end, last?.estimated ? 'estimated' : undefined];
  return last ? words.flatMap((word) => (word === undefined ? [] : `\`${word}\``)).join(', ') : 'no row';
};

describe('the table of endings in docs/billing.md', () => {
  it('has exactly one row for each tested ending', () => {
    expect(rows.map(([, what]) => what)).toEqual(Object.keys(endings));
  });

  it.each(rows)('%s%s', async (_start, what = '', row, tokens, perCall, plan) => {
    const ending = endings[what] as Ending;
    const paid = await endOf(ending, { charges: [byTokens] });
    expect(said(paid.item?.last)).toBe(row);
    expect(paid.item?.spent).toBe(ending.milli * 1_000_000n);
    expect(paid.item?.spent === 0n).toBe(tokens === 'nothing');

    const called = await endOf(ending, { charges: [byCall] });
    expect(called.item?.spent).toBe(perCall === 'once' ? 500_000_000n : 0n);

    const planned = await endOf(ending, { plan: [{ id: 'a', value: 5, models: ['m'] }] });
    expect([...(planned.item?.plan.values() ?? [])].some((count) => count > 0)).toBe(plan === 'counted');
    expect(planned.item?.spent).toBe(0n);
  });

  const unsearched = new Set([
    'the relay refuses the request (4xx)',
    'a background response never begins',
    'a background response is cancelled before it begins',
    'the outcome of the reservation is unknown',
  ]);
  const planOfM = { plan: [{ id: 'a', value: 5, models: ['m'] }] };

  it.each(rows)('%s%s, with a search', async (_start, what = '') => {
    const ending = endings[what] as Ending;
    for (const options of [{ charges: [byTokens] }, { charges: [byCall] }, { charges: [] }, planOfM]) {
      const [plain, searched] = [await endOf(ending, options), await endOf(ending, options, SearchRig)];
      const more = (searched.item?.spent ?? 0n) - (plain.item?.spent ?? 0n);
      expect({ options, more }).toEqual({ options, more: unsearched.has(what) ? 0n : 80_000_000n });
      expect(searched.item?.plan).toEqual(plain.item?.plan);
      expect(searched.item?.last?.search_price).toBe(more === 0n ? undefined : more);
      const { available = 0n, spent = 0n, granted = 0n, open } = searched.item ?? {};
      expect({ open: open?.size ?? 0, sum: available + spent }).toEqual({ open: 0, sum: granted });
    }
  });
});
