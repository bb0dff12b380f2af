/** Whose turn it is to try a candidate with something known against it. Loaded when there is one. */
import { CannotCarry } from '../../upstreams/dialect.ts';
import type { ChatCall } from '../call/call.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Attempt } from './attempt.ts';
import type { CandidateOrder, Rank } from './candidate-order.ts';
import type { HealthRecorder } from '../health/health-recorder.ts';

/** What ends the turn. Undefined: another candidate is to be taken. */
type Turn = (() => void) | undefined;

interface TrialParts {
  health: HealthRecorder;
  order: CandidateOrder;
  log: Log;
  call: Pick<ChatCall, 'identity' | 'key' | 'signal'>;
}

/** Throws CannotCarry. */
export async function trialTurn(
  parts: TrialParts,
  rank: Rank,
  attempt: Pick<Attempt, 'prepare'>,
): Promise<Turn> {
  const { standing } = rank;
  if (standing?.is === 'resting') return withSlot(parts, rank);
  if (standing?.is !== 'probe' || (await probes(parts, rank, attempt))) return () => {};
  parts.order.defer(rank);
  return undefined;
}

/** What was known may have changed while the call waited for a slot. */
async function withSlot({ health, order, call }: TrialParts, { candidate }: Rank): Promise<Turn> {
  const release = await health.trialSlot(candidate, call.signal);
  if (!release) return undefined;
  const standing = (await health.standings(call.key.account))?.(candidate);
  if (standing?.is !== 'blocked') return release;
  release();
  order.defer({ candidate, standing });
  return undefined;
}

/** Throws CannotCarry before it claims; the attempt throws its other errors when it is read. */
async function probes(
  { health, log, call }: TrialParts,
  { candidate }: Rank,
  attempt: Pick<Attempt, 'prepare'>,
): Promise<boolean> {
  try {
    await attempt.prepare();
  } catch (error) {
    if (error instanceof CannotCarry) throw error;
  }
  return health.claimProbe(candidate).catch((error: unknown) => {
    log.fault(call.identity.requestId, error);
    return false;
  });
}
