import {
  findBonus,
  type PaidFact,
  type PaymentChange,
  type ReversalFact,
} from '../../shared/billing/payments.ts';
import { codeIdOf, hashCode } from '../../shared/config/rows/code-row.ts';
import { recordFact } from '../../shared/relay/payments/payments-handle.ts';
import { redeemCode, type CodeStore } from '../../shared/relay/account/redeem-code.ts';
import type { KeyRequest } from '../../shared/relay/account/top-up.ts';
import { Refusal } from '../../shared/relay/http/refusal.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import { bonusOf, bonusOfPart } from '../oracle/credits.ts';
import { MemoryPaymentStore } from '../support/memory-payment-store.ts';
import { smooth } from './networked-store.ts';
import { hold } from './watch.ts';
import type { WorldKind } from './world-kind.ts';
import type { World } from './world.ts';

const quiet: Log = { request: () => undefined, event: () => undefined, fault: () => undefined };
const minuteMs = 60_000;
const steps = [
  { pay: 0.01, get: 0.011 },
  { pay: 0.5, get: 0.6 },
];
const nanoPerFen = 10_000_000n;
const fen = (yuan: unknown): bigint => BigInt(Math.round(Number(yuan) * 100)) * nanoPerFen;
/** All codes have the same form, whatever they name. */
const codeText = (at: number): string => `${at}`.padStart(20, '7');

/**
 * Redeems codes that accounts send concurrently and again, and applies payments with bonus and refunds to the grants.
 */
export function planCredits(world: World): void {
  planCodes(world);
  planPayments(world);
}

function planCodes(world: World): void {
  const { random, scheduler, customers } = world;
  const codes = new Map<string, Record<string, unknown>>();
  for (let at = 0; at < random.integer(1, 3); at += 1) {
    const hash = hashCode(codeText(at)) ?? '';
    codes.set(hash, { hash, batch: 'b', amount: random.integer(1, 20) / 100 });
    for (let sends = random.integer(1, 8); sends > 0; sends -= 1) {
      const { account } = random.pick(customers).account;
      // Many at the same moment, and some later.
      const atMs = 2 * minuteMs + (random.chance(0.5) ? 0 : random.integer(0, 3 * minuteMs));
      scheduler.after(atMs, () => world.watched(send(world, codes, { account, hash, code: codeText(at) })));
    }
    if (random.chance(0.2))
      scheduler.after(random.integer(minuteMs, 4 * minuteMs), () => {
        const row = codes.get(hash);
        if (row && row['redeemed_by'] === undefined) codes.set(hash, { ...row, revoked_at: 'then' });
      });
  }
}

async function send(
  world: World,
  codes: Map<string, Record<string, unknown>>,
  { account, hash, code }: Record<'account' | 'hash' | 'code', string>,
): Promise<void> {
  const [clock, network] = world.place(world.kind.hazards, world.kind.roughness);
  const { oracle } = world.watch;
  const redeem: CodeStore['redeem'] = async (seen, grant, at) => {
    const row = codes.get(seen.hash);
    const isOpen = row?.['redeemed_by'] === undefined && row?.['revoked_at'] === undefined;
    if (!isOpen && !world.redeemsTwice) return false;
    codes.set(seen.hash, { ...row, redeemed_by: grant.account, redeemed_at: at });
    oracle.redeemed(hash, grant.account, fen(row?.['amount']));
    world.startGrant(grant.account, grant.grant_id, grant.amount);
    return true;
  };
  const store: CodeStore = {
    find: (wanted) => network.send(async () => codes.get(wanted)),
    redeem: (seen, grant, at) =>
      network.send(() => {
        const work = redeem(seen, grant, at);
        // Nobody awaits it if its reply is lost.
        world.watched(work);
        return work;
      }),
  };
  const asked = { admitted: { row: { account } }, body: { code } } as unknown as KeyRequest;
  const answer = await redeemCode({ clock, random: world.random, log: quiet, codes: store }, asked).catch(
    (error: unknown) => {
      if (error instanceof Refusal) return error.body.error.code;
      throw error;
    },
  );
  if (answer === 'code_revoked') return;
  oracle.toldOfCode(hash, account, typeof answer === 'object' && answer.id === codeIdOf(hash));
}

function planPayments(world: World): void {
  const { random, scheduler, customers } = world;
  const minor = BigInt(random.integer(1, 100));
  const paid = { minor, currency: 'cny' };
  const [
    {
      account: { account },
    },
  ] = customers;
  const at = '2026-11-29T00:00:00Z';
  const common = { payment: 'pi_1', at };
  const bonus = findBonus(steps, paid, '1');
  const fact: PaidFact = {
    kind: 'paid',
    ...common,
    paid,
    live: true,
    rate: '1',
    bonus,
    account,
    problem: undefined,
  };
  const refunds = [minor / 3n, minor / 2n].filter((part) => part > 0n);
  const reversals = refunds.map((part, of): ReversalFact => ({
    kind: 'reversal',
    ...common,
    id: `re_${of}`,
    reversal: { kind: 'refund', state: 'taken', minor: part, currency: 'cny' },
  }));
  const store = new MemoryPaymentStore([account]);
  const whole = bonusOf(steps, minor * nanoPerFen);
  const taken = refunds.reduce((sum, part) => sum + part * nanoPerFen + bonusOfPart(whole, part, minor), 0n);
  world.watch.oracle.due(account, minor * nanoPerFen + whole - taken);
  // Stripe sends each event until it is accepted; the last delivery never fails.
  for (const each of [fact, fact, ...reversals, ...reversals])
    scheduler.after(random.integer(minuteMs, 6 * minuteMs), () => deliver(world, store, each));
  for (const each of [fact, ...reversals])
    scheduler.after(20 * minuteMs, () => deliver(world, store, each, calm));
}

const calm = { hazards: { crash: 0, freeze: 0, freezeMs: 0 }, roughness: smooth };

function deliver(
  world: World,
  store: MemoryPaymentStore,
  fact: PaidFact | ReversalFact,
  { hazards, roughness }: Pick<WorldKind, 'hazards' | 'roughness'> = world.kind,
): void {
  const [clock, network] = world.place(hazards, roughness);
  const ports = {
    clock,
    random: world.random,
    log: quiet,
    metrics: { count: () => undefined },
    payments: {
      find: (id: string) => network.send(() => store.find(id)),
      write: (change: PaymentChange) =>
        network.send(async () => {
          const written = await store.write(change);
          if (written === 'written')
            for (const { account, grant_id, amount } of change.grants)
              world.startGrant(account, grant_id, amount);
          return written;
        }),
      account: async (account: string) => ({ account, plan: undefined, stored: {} }),
      all: () => store.all(),
    },
  };
  world.watched(recordFact(ports, fact));
}

/** At the end, the grants of applied codes and payments equal the due amounts, to the billionth. */
export function checkCredits({ grants, watch, customers }: World): void {
  for (const {
    account: { account },
  } of customers) {
    const applied = [...grants.applied].filter(
      ([key]) => /^\S+ (code-|pi_|re_)/.test(key) && key.startsWith(`${account} `),
    );
    const sum = applied.reduce((total, [, { amount }]) => total + amount, 0n);
    const due = watch.oracle.dues.get(account) ?? 0n;
    hold(sum === due, `codes and payments credit ${sum} to ${account}, the oracle says ${due}`);
  }
}
