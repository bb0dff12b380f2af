/** Plans which fault is injected when: the same seed and length give the same plan. */
import { SeededRandom } from '../../simulation/seeded-random.ts';
import { configurationEdits, storeFaults, type FaultKind } from './fault-kinds.ts';

export interface PlannedFault {
  atMs: number;
  kind: FaultKind;
}

const fullMinutes = 10;
const fullQuota = 20;
/** Extra injections make up for those without a target (a kill when no process runs). */
const surplus = 1.3;

/** Required injections of each kind: 20 in ten minutes or more, proportionally fewer in shorter runs. */
export const quotaFor = (minutes: number): number =>
  Math.max(1, Math.min(fullQuota, Math.floor((fullQuota * minutes) / fullMinutes)));

const plannedFor = (minutes: number): number =>
  Math.max(2, Math.ceil((fullQuota * surplus * minutes) / fullMinutes));

/** Store faults use the first half of each cycle and edits the second, so that edits have 10 s of a working store. */
export const cycleMs = (lengthMs: number): number => Math.min(60_000, Math.max(20_000, lengthMs / 2));

export function faultPlan(seed: number, minutes: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const random = new SeededRandom(seed);
  const lengthMs = minutes * 60_000;
  const count = plannedFor(minutes);
  const even = (from: number, to: number): number[] =>
    Array.from({ length: count }, (_, at) => from + ((at + random.next()) / count) * (to - from));
  const plan = kinds.flatMap((kind) => {
    if (storeFaults.has(kind)) return even(0, 1).map((share) => ({ kind, atMs: inHalf(share, 0, lengthMs) }));
    if (configurationEdits.has(kind))
      return even(0, 1).map((share) => ({ kind, atMs: inHalf(share, 1, lengthMs) }));
    return even(0.02, 0.95).map((share) => ({ kind, atMs: share * lengthMs }));
  });
  return plan.toSorted((a, b) => a.atMs - b.atMs);
}

/** Spreads a share of the run over one half of its cycles. */
function inHalf(share: number, half: 0 | 1, lengthMs: number): number {
  const cycle = cycleMs(lengthMs);
  const at = share * lengthMs;
  const start = Math.floor(at / cycle) * cycle;
  const within = (at - start) / cycle;
  // The last edits of a half leave some seconds in which calls must use the new price.
  const used = half === 0 ? within * 0.42 : 0.5 + within * 0.2;
  return start + used * cycle;
}
