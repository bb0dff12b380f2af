/** Runs a soak up to its observations: stack, load, faults, time to settle, then the tables. */
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../infra/local/host/loopback.ts';
import { runAudit, type AuditOutcome } from './audit.ts';
import { balanceFindings } from './checker/balances.ts';
import type { CallSeen, Observations } from './checker/observations.ts';
import { ConfigurationEdits } from './disturb/configuration.ts';
import { Disturbances } from './disturb/disturbances.ts';
import { ProcessFaults } from './disturb/processes.ts';
import { StoreFaults } from './disturb/stores.ts';
import { Injector } from './injector.ts';
import { Load } from './load/load.ts';
import { firstPrices, granted, prepare, soakRows } from './load/rows.ts';
import type { SoakOptions } from './options.ts';
import { longCalls } from './plan/fault-kinds.ts';
import { faultPlan, quotaFor } from './plan/fault-plan.ts';
import { MemoryLog, type MemorySample } from './stack/memory.ts';
import { startSoakedStack, type SoakedStack } from './stack/soaked-stack.ts';
import { HoldLog, readTables } from './stack/tables.ts';
import { startSoakUpstream } from './upstream/soak-upstream.ts';

export interface SoakResult {
  seen: Observations;
  startedMs: number;
  endedMs: number;
  memory: MemorySample[];
  audit: AuditOutcome | undefined;
  logFile: string;
  /** Interrupted by Ctrl-C, so the tables were not read. */
  interrupted: boolean;
}

export interface Progress {
  (state: {
    elapsedMs: number;
    lengthMs: number;
    calls: number;
    failed: number;
    faults: number;
    step: string;
  }): void;
}

const sampleMs = 2_000;
const sweepGraceSeconds = 10;
/** Without long calls, reservations of killed calls expire soon. */
const longRequestSeconds = 70;
const shortRequestSeconds = 12;
const drainSlackMs = 20_000;
const ledgerWaitMs = 40_000;

export async function runSoak(
  options: SoakOptions,
  progress: Progress,
  interruption: AbortSignal,
): Promise<SoakResult> {
  await using started = new AsyncDisposableStack();
  const { seed, minutes, faults, workers, lie } = options;
  const upstream = started.adopt(await startSoakUpstream(), (server) => server.close());
  const stack = started.adopt(await startSoakedStack({ seed, sweepGraceSeconds, lie }), (running) =>
    running.stop(),
  );
  const prices = firstPrices();
  const { documents } = stack;
  const requestSeconds = faults.some((kind) => longCalls.has(kind))
    ? longRequestSeconds
    : shortRequestSeconds;
  const closedEndpoint = `http://127.0.0.1:${await findFreePort('127.0.0.1')}/v1`;
  const { endpointFor } = upstream;
  const rows = soakRows({ endpointFor, closedEndpoint, prices, requestSeconds });
  await prepare(stack, rows, interruption);
  stack.beginLie();

  const injected = new Map<string, number>(faults.map((kind) => [kind, 0]));
  const count = (kind: string): void => void injected.set(kind, (injected.get(kind) ?? 0) + 1);
  const calls: CallSeen[] = [];
  const around = new Disturbances(seed, count);
  const load = new Load({
    seed,
    origin: stack.origin,
    workers,
    expect: (call) => upstream.expect(call),
    seen: (call) => void calls.push(call),
    injected: count,
  });
  const injector = new Injector(load, actionsOf(stack, around, { documents, endpointFor, prices, around }));
  const holds = new HoldLog(documents);
  const memory = new MemoryLog(stack.runnerPid, stack.tablesEndpoint);
  const startedMs = Date.now();
  const lengthMs = minutes * 60_000;
  const sum = (): number => [...injected.values()].reduce((total, each) => total + each, 0);
  const say = (step: string): void =>
    progress({
      elapsedMs: Date.now() - startedMs,
      lengthMs,
      calls: calls.length,
      failed: calls.filter(({ end }) => end !== 'whole').length,
      faults: sum(),
      step,
    });

  load.start();
  injector.start(faultPlan(seed, minutes, faults));
  while (Date.now() - startedMs < lengthMs && !interruption.aborted) {
    await sleep(Math.min(sampleMs, lengthMs), undefined, { signal: interruption }).catch(() => {});
    memory.read(stack.environments.keys());
    await holds.read();
    say('load');
  }
  const endedMs = Date.now();
  if (interruption.aborted) around.end();
  const ended = Promise.all([injector.end(), load.end()]);
  while (!interruption.aborted && !(await Promise.race([ended.then(() => true), sleep(sampleMs, false)])))
    say(`the last ${load.inFlight} calls end`);
  if (!interruption.aborted) await drain({ stack, holds, around, say, interruption });
  const complete = !interruption.aborted;
  const audit = complete ? await settleAndAudit(stack, say) : undefined;
  const seen: Observations = {
    calls,
    attempts: upstream.attempts,
    prices,
    disturbances: around.list,
    deaths: stack.deaths,
    losses: stack.losses,
    holds: [...holds.holds.values()],
    sweepGraceSeconds,
    granted,
    tables: complete ? await readTables(documents) : { quotas: [], ledger: [], daily: [] },
    injected,
    quota: quotaFor(minutes),
  };
  const { logFile } = stack;
  return {
    seen,
    startedMs,
    endedMs,
    memory: memory.samples,
    audit,
    logFile,
    interrupted: !complete,
  };
}

function actionsOf(
  stack: SoakedStack,
  around: Disturbances,
  configuration: ConstructorParameters<typeof ConfigurationEdits>[0],
): ConstructorParameters<typeof Injector>[1] {
  const processes = new ProcessFaults(stack, around);
  const stores = new StoreFaults(stack.store, around);
  const edits = new ConfigurationEdits(configuration);
  return {
    'kill-answering': () => processes.killAnswering(),
    'kill-background': () => processes.killBackground(),
    freeze: () => processes.freeze(),
    'clock-skew': () => processes.skewClock(),
    'store-throttled': () => stores.throttle(),
    'store-down': () => stores.breakDown(),
    'store-reply-lost': () => stores.loseReplies(),
    'store-slow': () => stores.slowDown(),
    'price-edit': () => edits.price(),
    'bad-row': () => edits.badRow(),
    'channel-deleted': () => edits.deleteChannel(),
  };
}

interface Draining {
  stack: SoakedStack;
  holds: HoldLog;
  around: Disturbances;
  say: (step: string) => void;
  interruption: AbortSignal;
}

/** Waits until nothing is reserved, or until the last lease ended so long ago that waiting is pointless. */
async function drain({ stack, holds, say, interruption }: Draining): Promise<void> {
  for (;;) {
    const open = await holds.read();
    if (open.length === 0 || interruption.aborted) return;
    const lastMs =
      Math.max(...open.map(({ leaseEnd }) => leaseEnd * 1000)) + sweepGraceSeconds * 1000 + drainSlackMs;
    if (Date.now() > lastMs) return;
    say(
      `${open.length} reservations of killed calls expire, ${Math.ceil((lastMs - Date.now()) / 1000)} s at most`,
    );
    stack.runSchedules();
    await sleep(sampleMs, undefined, { signal: interruption }).catch(() => {});
  }
}

/** Ledger rows arrive some seconds after their calls. Closes that the relay failed to write are written as an operator would. */
async function settleAndAudit(stack: SoakedStack, say: (step: string) => void): Promise<AuditOutcome> {
  await ledgerComplete(stack, say);
  say('audit');
  const audit = await runAudit(
    stack.tablesEndpoint,
    stack.losses.map(({ line }) => line),
  );
  if (stack.losses.length > 0) await ledgerComplete(stack, say);
  return audit;
}

async function ledgerComplete({ documents }: SoakedStack, say: (step: string) => void): Promise<void> {
  const untilMs = Date.now() + ledgerWaitMs;
  while (Date.now() < untilMs) {
    const findings = balanceFindings({ tables: await readTables(documents), granted });
    if (findings.length === 0) return;
    say('the ledger gets its last rows');
    await sleep(1_000);
  }
}
