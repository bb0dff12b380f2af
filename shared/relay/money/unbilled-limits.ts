/**
 * The limits of what opens no reservation, and so leaves no row: reads of what is stored, and counts of tokens. Such work is counted
 * by the minute, so that what a crash leaves counts for a minute alone. Each throws a Refusal or StoreUnavailable.
 */
import { minuteOf } from '../../billing/reservation.ts';
import type { ChatCall } from '../call/call.ts';
import type { Refusal } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { Backoff } from '../retry.ts';
import { counterKeyOf } from './call-costs.ts';

type CountPorts = Pick<ChatPorts, 'clock' | 'random' | 'counters' | 'log'>;

/** How long counters that throttle are asked again, while a client waits. */
const countMsMax = 1_500;

/** Counts one more in its key's minute, if that has a limit. */
export async function countUnbilled(ports: CountPorts, { key }: Pick<ChatCall, 'key'>): Promise<void> {
  const { rpm } = key;
  if (rpm === undefined) return;
  const minute = minuteOf(ports.clock.now());
  const count = await new Backoff(ports, countMsMax).until(() =>
    ports.counters.countCall(counterKeyOf(key), minute, rpm),
  );
  if (count === undefined) throw await createLimitRefusal(ports, key, 'rate');
}

/** Works while no more of the key is under way than it may have calls at once. */
export function runWithinKeyPermits<T>(
  ports: CountPorts,
  { key, requestId }: { key: ChatCall['key']; requestId: string },
  work: () => Promise<T>,
): Promise<T> {
  const createRefusal = (): Promise<Refusal> => createLimitRefusal(ports, key, 'concurrency');
  const slots = { of: counterKeyOf(key), most: key.max_concurrency, requestId, createRefusal };
  return runWithinPermits(ports, slots, work);
}

interface PermitQuery {
  /** The counter that holds the slots. */
  of: string;
  most: number | undefined;
  requestId: string;
  createRefusal: () => Promise<Refusal>;
}

export async function runWithinPermits<T>(
  ports: CountPorts,
  { of, most, requestId, createRefusal: refused }: PermitQuery,
  work: () => Promise<T>,
): Promise<T> {
  if (most === undefined) return work();
  const { clock, counters, log } = ports;
  const minute = minuteOf(clock.now());
  const counter = { key: of, period: `reads-${minute}`, expires: (minute + 5) * 60 };
  const hold = { ...counter, name: requestId };
  const reply = await new Backoff(ports, countMsMax).until(() => counters.hold(hold, 1n, BigInt(most)));
  if (!reply.done) throw await refused();
  try {
    return await work();
  } finally {
    const freed = new Backoff(ports, countMsMax).until(() =>
      counters.change(counter, { used: -1n, running: -1 }),
    );
    await freed.catch((error: unknown) => log.fault(requestId, error));
  }
}

async function createLimitRefusal(
  { clock }: CountPorts,
  key: ChatCall['key'],
  reason: 'rate' | 'concurrency',
) {
  const { refuseForLimit } = await import('./reserve-refusals.ts');
  return refuseForLimit(key, { reason, nowMs: clock.now() });
}
