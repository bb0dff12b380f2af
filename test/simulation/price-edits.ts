/**
 * Background responses through the whole pipeline, in virtual time, while their prices and their alias are edited in
 * place, processes die at any store call, replies are lost and runs come late. The expected reservation and charge of
 * each are recomputed only from the rows of the moment when it was accepted.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { closeExpired } from '../../shared/billing/quota-item.ts';
import {
  CoreRig,
  delta,
  demoKey,
  done,
  finish,
  keyRow,
  usage,
  type RigOptions,
} from '../support/core-rig.ts';
import type { Fault } from '../support/rough-quota-store.ts';
import { costOf, type ChargeText } from '../oracle/price-list.ts';
import { SeededRandom } from './seeded-random.ts';

const path = '/v1/responses';
const limit = 60;
const promptTokens = 5;
const lanes = 6;
const grantedYuan = 1_000_000n;
const models = ['m', 'small', 'large'] as const;
const aliases = [['small'], ['large'], ['large', 'small'], ['small', 'large']];

/** The contents of the rows for a while. */
interface Rows {
  charges: ChargeText[];
  alias: string[];
}

export interface EditedRun {
  accepted: number;
  /** Closes by kind. */
  closes: Record<string, number>;
  edits: number;
  deaths: number;
  faults: number;
  /** Charged more than it reserved, or by another price than that of its acceptance. */
  wrong: string[];
  /** The amount that the balance and the open entries do not explain. */
  difference: bigint;
  open: number;
}

/** A process that dies at one of its store calls. */
interface Mortal {
  left: number;
}

export const processes = new AsyncLocalStorage<Mortal>();
const forever = new Promise<never>(() => {});

type Call = (...given: unknown[]) => Promise<unknown>;

/** A dead process makes no more store calls and receives no reply. */
export function makeMortal(store: object, died: () => void): void {
  for (const [name, call] of Object.entries(store) as [string, unknown][]) {
    if (typeof call !== 'function') continue;
    const living = call as Call;
    const wrapped: Call = async (...given) => {
      const process = processes.getStore();
      if (process) process.left -= 1;
      if (process && process.left < 0) return forever;
      const reply = await living(...given);
      if (process?.left !== 0) return reply;
      died();
      return forever;
    };
    Object.assign(store, { [name]: wrapped });
  }
}

export async function runEdited(seed: number, calls: number): Promise<EditedRun> {
  const random = new SeededRandom(seed);
  let edits = 0;
  const rows: Rows = { charges: [], alias: ['small'] };
  const options: RigOptions = {
    channels: [{ models: [...models] }],
    keys: { [demoKey]: { row: keyRow({ store: true }) } },
    charges: [],
    send: async ({ body }) => {
      await rig.clock.sleep(random.integer(0, 4_000));
      const { max_completion_tokens: most, max_tokens: least = most } = JSON.parse(body) as Record<
        string,
        number
      >;
      const steps = [delta('Hello'), finish('length'), usage(promptTokens, least ?? 0), done];
      return { status: 200, headers: {}, body: bytesOf(steps.map(String)) };
    },
  };
  const rig = new CoreRig(options);
  rig.quotas.grant('acme', grantedYuan * 1_000_000_000n);

  /** No two prices are equal. */
  const setPrice = (model: (typeof models)[number]): void => {
    edits += 1;
    const others = rows.charges.filter((row) => !row.models.includes(model));
    const isDear = random.chance(0.5);
    const input = ((isDear ? 5_000_000 : 100_000) + edits) / 1e6;
    const rule = {
      id: models.indexOf(model) + 1,
      type: 'token-billing' as const,
      models: [model],
      input,
      output: 2 * input,
    };
    rows.charges = random.chance(0.1) ? others : [...others, rule].toSorted((a, b) => a.id - b.id);
    options.charges = rows.charges as unknown as Record<string, unknown>[];
  };
  const setAlias = (): void => {
    edits += 1;
    rows.alias = random.pick(aliases as [string[], ...string[][]]);
    options.settings = { aliases: [{ name: 'best', models: rows.alias, onContextLength: false }] };
  };
  for (const model of models) setPrice(model);
  setAlias();

  const result: EditedRun = {
    accepted: 0,
    closes: {},
    edits: 0,
    deaths: 0,
    faults: 0,
    wrong: [],
    difference: 0n,
    open: 0,
  };
  const agreed = new Map<string, Rows & { asked: string }>();
  const charged = new Map<string, { amount: bigint; charge: bigint }>();
  const priceOf = (of: Rows, model: string): ChargeText | undefined =>
    of.charges.find((row) => row.models.includes(model));
  /** Found by the first call, which nothing disturbs. */
  let inputMost = 0;
  const wrongWith = (id: string, kind: string, model: string): string | undefined => {
    const { amount, charge } = charged.get(id) ?? { amount: 0n, charge: 0n };
    const of = agreed.get(id);
    if (charge > amount) return `charged ${charge} above its hold of ${amount}`;
    if (!of) return `was never asked for`;
    const named = of.asked === 'best' ? of.alias : [of.asked];
    const holds = named.map((one) => costOf(priceOf(of, one), { input: inputMost, output: limit }));
    const hold = holds.reduce((a, b) => (a > b ? a : b));
    if (inputMost > 0 && hold !== amount) return `held ${amount}, not ${hold}`;
    const output = kind === 'settled' ? limit : 0;
    const due =
      kind === 'settled' || kind === 'expired'
        ? costOf(priceOf(of, model), { input: promptTokens, output })
        : 0n;
    return named.includes(model) && charge === due ? undefined : `charged ${charge} by ${model}, not ${due}`;
  };
  const close = rig.quotas.close.bind(rig.quotas);
  const chargeLate = rig.quotas.chargeLate.bind(rig.quotas);
  rig.quotas.close = async (write) => {
    const reply = await close(write);
    const { id, entry, closeRecord } = write;
    if (!reply.done || entry.tombstone) return reply;
    const { kind, charge, model = entry.model } = closeRecord;
    result.closes[kind] = (result.closes[kind] ?? 0) + 1;
    charged.set(id, { amount: entry.amount, charge });
    const what = wrongWith(id, kind, model);
    if (what !== undefined) result.wrong.push(`${id} (${kind}, ${agreed.get(id)?.asked}) ${what}`);
    return reply;
  };
  rig.quotas.chargeLate = async (late) => {
    await chargeLate(late);
    const id = late.row.id.replace('late#', '');
    const before = charged.get(id);
    if (before) before.charge += late.difference;
    const what = wrongWith(id, late.row.kind, late.row.model);
    if (what !== undefined) result.wrong.push(`${id} (late, ${agreed.get(id)?.asked}) ${what}`);
  };
  const { responses, runs, events } = rig.stored;
  for (const store of [rig.store, responses, runs, events]) makeMortal(store, () => (result.deaths += 1));

  let number = 0;
  const ask = async (asked: string): Promise<string | undefined> => {
    number += 1;
    const id = `01call${String(number).padStart(20, '0')}`;
    agreed.set(id, { ...rows, asked });
    const body = { model: asked, input: 'hi', max_output_tokens: limit, background: true };
    const response = await rig.respond(body, { path, id });
    await response.done;
    return response.status === 200 ? `resp-${id}` : undefined;
  };
  /** Races against time, because work of a dead process never ends. */
  const living = async (diesAt: number, work: () => Promise<unknown>): Promise<void> => {
    const acting = processes.run({ left: diesAt }, work).catch(() => {});
    await Promise.race([acting, rig.clock.sleep(40_000)]);
  };

  const first = await rig.clock.run(ask('m'));
  await rig.clock.run(rig.runs({ id: first ?? '' }));
  const { amount = 0n } = [...charged.values()][0] ?? {};
  const rule = priceOf(rows, 'm');
  while (costOf(rule, { input: inputMost, output: limit }) < amount) inputMost += 1;

  const over = new AbortController();
  const editing = async (): Promise<void> => {
    for (let turn = 1; !over.signal.aborted; turn += 1) {
      await rig.clock.sleep(5_000);
      if (turn % 2 === 1) setPrice('m');
      else if (turn % 4 === 2) setAlias();
      else setPrice(random.pick(['small', 'large'] as const));
    }
  };
  const sweeping = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await rig.clock.sleep(20_000);
      for (const item of rig.quotas.items.values())
        for (const write of closeExpired(item, rig.clock.now() / 1000, 30)) await rig.quotas.close(write);
    }
  };
  const faults: readonly [Fault, ...Fault[]] = [
    'lost',
    'lost',
    'dropped',
    'busy',
    { kind: 'late', afterMs: 3_000 },
  ];
  const lane = async (): Promise<void> => {
    for (;;) {
      if (number >= calls) return;
      if (random.chance(0.3)) {
        rig.store.meets(random.pick(['reserve', 'close', 'renew'] as const), random.pick(faults));
        result.faults += 1;
      }
      const fate = (): number => (random.chance(0.15) ? random.integer(1, 9) : 1_000);
      let id: string | undefined;
      await living(fate(), async () => {
        id = await ask(random.chance(0.65) ? 'm' : 'best');
      });
      if (id === undefined) continue;
      result.accepted += 1;
      const event = { id };
      await rig.clock.sleep(random.integer(0, random.chance(0.1) ? 70_000 : 14_000));
      await living(fate(), () => rig.runs(event));
      if (random.chance(0.2)) await living(1_000, () => rig.runs(event));
    }
  };
  const beside = [editing(), sweeping()];
  await rig.clock.run(Promise.all(Array.from({ length: lanes }, lane)));
  await rig.clock.run(rig.clock.sleep(1_000_000));
  over.abort();
  await rig.clock.run(Promise.all(beside));

  const items = [...rig.quotas.items.values()];
  const sum = (of: 'available' | 'spent'): bigint => items.reduce((total, item) => total + item[of], 0n);
  const isCall = ([, entry]: [string, { tombstone: boolean }]): boolean => !entry.tombstone;
  result.open = items.reduce((total, item) => total + [...item.open].filter(isCall).length, 0);
  result.difference = grantedYuan * 1_000_000_000n - sum('available') - sum('spent');
  return { ...result, edits };
}

async function* bytesOf(steps: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const step of steps) yield new TextEncoder().encode(step);
}
