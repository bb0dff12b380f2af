import type { Mutant } from './mutant.ts';
import { checkCredits, planCredits } from './credits.ts';
import { Broken, hold } from './watch.ts';
import type { WorldKind } from './world-kind.ts';
import { graceSeconds, World } from './world.ts';

/** Counts of events in a world, which show that the world reached the intended cases. */
export type Tale = Record<string, number>;

const minuteMs = 60_000;
const lastCallMs = 8 * minuteMs;
/** Late enough for everything frozen to have woken up at least once. */
const lastScheduleMs = 30 * minuteMs;

/** Runs the world of a seed to its end and checks it at every step. Throws a Broken that names the seed. */
export async function simulate(seed: number, mutant?: Mutant, kind?: Partial<WorldKind>): Promise<Tale> {
  const world = new World(seed, mutant, kind);
  try {
    plan(world);
    await world.scheduler.run();
    await settleDown(world);
    for (const { account } of world.customers) checkAccount(world, account.account);
    for (const report of world.reports) checkReport(world, report);
    world.checkCounters();
    checkCredits(world);
  } catch (error) {
    throw new Broken(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  return taleOf(world);
}

function plan(world: World): void {
  const { random, scheduler } = world;
  const milliYuan = 1_000_000n * world.kind.grantFactor;
  for (const { account } of world.customers) {
    const name = account.account;
    if (random.chance(0.9)) world.startGrant(name, 'first', BigInt(random.integer(1, 1_500)) * milliYuan);
    for (let more = random.integer(0, 2); more > 0; more -= 1) {
      const amount = BigInt(random.integer(-100, 500)) * milliYuan;
      if (amount !== 0n)
        scheduler.after(random.integer(0, lastCallMs), () => world.startGrant(name, `more${more}`, amount));
    }
  }
  for (let calls = random.integer(10, 40); calls > 0; calls -= 1)
    scheduler.after(random.integer(1_000, lastCallMs), () => world.startCall());
  if (world.kind.bursts) planBurst(world);
  for (let atMs = 0; atMs < lastScheduleMs; atMs += minuteMs) {
    scheduler.after(atMs, () => world.sweep());
    if (atMs % (5 * minuteMs) === 0) scheduler.after(atMs, () => world.keepMissedGrants());
  }
  for (let atMs = 0; atMs < lastScheduleMs; atMs += random.integer(1_000, 60_000))
    scheduler.after(atMs, () => world.takeBatch());
  if (world.kind.credits) planCredits(world);
}

/** One account gets busy for half a minute, so it is split, and then gets quiet again. */
function planBurst(world: World): void {
  const { random, scheduler } = world;
  const [customer] = world.customers;
  world.startGrant(customer.account.account, 'burst', 5_000_000_000n);
  const call = (): void => world.startCall(customer);
  for (let corrections = random.integer(0, world.kind.corrections); corrections > 0; corrections -= 1)
    scheduler.after(random.integer(70_000, 4 * minuteMs), () =>
      world.startGrant(
        customer.account.account,
        `burst${corrections}`,
        -BigInt(random.integer(1, 2_000)) * 1_000_000n,
      ),
    );
  for (let calls = random.integer(20, 50); calls > 0; calls -= 1)
    scheduler.after(random.integer(60_000, 90_000), call);
  for (let calls = random.integer(5, 15); calls > 0; calls -= 1)
    scheduler.after(random.integer(5 * minuteMs, lastCallMs), call);
}

/** Faults stop here: everything that was left behind must now be found. */
async function settleDown(world: World): Promise<void> {
  world.finalGrants();
  world.scheduler.after((world.kind.requestSeconds + graceSeconds + 60) * 1000, () => world.finalSweep());
  await world.scheduler.run();
  for (let batches = 0; !world.stream.drained; batches += 1) {
    hold(batches < 10_000, 'the stream does not end');
    world.finalBatch();
    await world.scheduler.run();
  }
}

function checkAccount({ quotas, ledger, watch }: World, account: string): void {
  const item = quotas.whole(account);
  if (!item) return;
  hold(
    item.open.size === 0,
    `${account} has open reservations at the end: ${[...item.open.keys()].join(' ')}`,
  );
  for (const [key, ids] of item.permits)
    hold(false, `${account}: places of ${key} are taken at the end by ${[...ids].join(' ')}`);
  const sum = ledger.sums.get(account) ?? 0n;
  hold(sum === item.spent, `the ledger of ${account} sums to ${sum}, spent are ${item.spent}`);
  const rows = [...ledger.rows.values()].filter((row) => row.account === account);
  for (const [slot, calls] of item.plan) {
    const kept = rows.filter((row) => row.plan_slot === slot && !row.id.startsWith('late#')).length;
    hold(calls === kept, `${account}: ${slot} counts ${calls}, the ledger ${kept}`);
  }
  for (const { id, charge } of rows) {
    if (id.startsWith('late#')) continue;
    const late = ledger.rows.get(`${account} late#${id}`)?.charge ?? 0n;
    const charged = watch.charged(id);
    hold(charge + late === charged, `${id} was charged ${charged}, the ledger says ${charge + late}`);
  }
  hold(item.granted === watch.oracle.account(account).granted, `${account} has not got every grant once`);
}

/** The reported charge of a call equals the charge of its ledger row. */
function checkReport(
  { watch, ledger, logged }: World,
  { id, account, refused, stoodStill, charge }: World['reports'][number],
): void {
  const loggedIt = (name: string): boolean => logged.get(name)?.has(id) ?? false;
  const charged = watch.charged(id);
  const knows = !stoodStill && !loggedIt('reserve_unknown');
  if (refused && knows) hold(charged === 0n, `${id} was refused and charged ${charged}`);
  if (charge === undefined || loggedIt('settle_lost') || loggedIt('settle_unsure')) return;
  const row = ledger.rows.get(`${account} ${id}`);
  const sum = (row?.charge ?? 0n) + (ledger.rows.get(`${account} late#${id}`)?.charge ?? 0n);
  hold(sum === charge, `${id} reported a charge of ${charge}, the ledger says ${sum}`);
}

function taleOf(world: World): Tale {
  const { watch, logged, reports, scheduler } = world;
  const closes = [...watch.closes.values()].flat();
  const kinds = (kind: string): number => closes.filter((close) => close.kind === kind).length;
  const events = (name: string): number => logged.get(name)?.size ?? 0;
  return {
    steps: scheduler.steps,
    split: events('account_split'),
    joined: events('account_joined'),
    refused: reports.filter(({ refused }) => refused).length,
    settled: kinds('settled'),
    released: kinds('released'),
    expired: kinds('expired'),
    cancelled: kinds('cancelled'),
    onPlan: closes.filter(({ entry }) => entry.slot !== '').length,
    official: closes.filter(({ entry }) => entry.official).length,
    aboveReserve: closes.filter(({ charge, entry }) => charge > entry.amount).length,
    settleLate: events('settle_late'),
    chargedLate: watch.late.size,
    limited: world.seen.limited,
    renewed: world.seen.renewed,
    ranLater: world.seen.ranLater,
    refusedLater: world.seen.refusedLater,
    meteredOnCounters: world.seen.meteredOnCounters,
    meteredInParts: world.seen.meteredInParts,
    pastCrashed: world.seen.pastCrashed,
    correctedInParts: world.seen.correctedInParts,
    overdrawn: world.seen.overdrawn,
    overdraftsEnded: world.seen.overdraftsEnded,
    joinedInDebt: world.seen.joinedInDebt,
    onBudget: closes.filter(({ entry }) => entry.budget !== undefined).length,
    exactBudgets: world.seen.exactBudgets,
    taggedBudgets: world.seen.taggedBudgets,
    redeemed: watch.oracle.codes.size,
    settleLost: events('settle_lost'),
    reserveUnknown: events('reserve_unknown'),
  };
}
