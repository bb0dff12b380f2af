/** Where a candidate stands for one call. Pure; loaded when something is known against a candidate. */
import { forgottenAtMs, type HealthEntry, type RestKind } from '../ports/stores/channel-health.ts';

export const failuresInARow = 3;
/** How long a candidate that fails comes last. */
export const failingMs = 30_000;

/**
 * Where a candidate stands for a call. `probe`: its rest is over and nobody has tried it. `last`: it failed for this
 * account alone, or this account's probe failed. `blocked`: the upstream said when it may be asked again.
 */
export interface Standing {
  is: 'probe' | 'last' | 'resting' | 'blocked';
  /** When that ends. */
  untilMs: number;
  kind: RestKind;
}

/** Undefined: nothing is known against it. `account`: a hash. */
export function standing(
  entry: HealthEntry | undefined,
  account: string,
  nowMs: number,
): Standing | undefined {
  if (!entry || forgottenAtMs(entry) <= nowMs) return undefined;
  if (entry.kind === 'failures') {
    const untilMs = entry.lastMs + failingMs;
    const isLast =
      entry.count >= failuresInARow && entry.accounts.length === 1 && entry.accounts[0] === account;
    return isLast && untilMs > nowMs ? { is: 'last', untilMs, kind: 'failing' } : undefined;
  }
  const { kind, untilMs, statedUntilMs = 0, probeUntilMs = 0, failedBy } = entry;
  if (untilMs > nowMs)
    return statedUntilMs > nowMs
      ? { is: 'blocked', untilMs: statedUntilMs, kind }
      : { is: 'resting', untilMs, kind };
  if (probeUntilMs > nowMs) return { is: 'resting', untilMs, kind };
  return { is: failedBy === account ? 'last' : 'probe', untilMs, kind };
}

const worstFirst: readonly Standing['is'][] = ['blocked', 'resting', 'last', 'probe'];

/** Of what is known of a candidate and of its model there, what keeps a call from it the longest. */
export function worst(standings: readonly (Standing | undefined)[]): Standing | undefined {
  const [first] = standings
    .filter((one) => one !== undefined)
    .toSorted((a, b) => worstFirst.indexOf(a.is) - worstFirst.indexOf(b.is) || b.untilMs - a.untilMs);
  return first;
}
