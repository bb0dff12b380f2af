import { inflateWithZlib } from '../../shared/adapters/system/node-ports.ts';
import { reserveForRun, type Bill } from '../../shared/relay/money/bill.ts';
import { toRefusal } from '../../shared/relay/http/refusal.ts';
import { answer, type AcceptedCall, type CallReport } from './call.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Server } from './server.ts';
import { hold } from './watch.ts';

/** A stored response; the store always knows who holds it. */
export class LaterCall {
  readonly accepted: AcceptedCall;
  /** One conditional write: one event or cancel is first. */
  #isTaken = false;

  constructor(accepted: AcceptedCall) {
    this.accepted = accepted;
  }

  get id(): string {
    return this.accepted.call.identity.requestId;
  }

  /** Whether this process holds it now: a run, or a cancel before any run. */
  take(): boolean {
    const isFirst = !this.#isTaken;
    this.#isTaken = true;
    return isFirst;
  }
}

const beginsWithinMs = 60_000;

/** One delivery of its event. Undefined when there was nothing to do. */
export async function runLater(
  server: Server,
  { later, random, longestMs }: { later: LaterCall; random: SeededRandom; longestMs: number },
): Promise<CallReport | undefined> {
  const { environment, reservations, mutation, faults } = server;
  await environment.sleep(random.integer(0, 200));
  if (!later.take() && mutation?.runsTwice !== true) return undefined;
  // The claim's reply arrives later, or at an environment that froze.
  await environment.sleep(random.integer(0, 200));
  const { call, billed, asked } = later.accepted;
  server.call = call;
  const untilMs = call.startedMs + beginsWithinMs;
  const nothing = { id: later.id, account: asked.account, refused: true };
  if (environment.now() > untilMs) return { ...nothing, stoodStill: environment.stoodStill };
  const deadlineMs = environment.now() + longestMs;
  const faultsBefore = faults();
  let bill: Bill;
  try {
    const waiting = { untilMs, signal: new AbortController().signal };
    const freeAttempts = { count: async () => {} };
    const ports = { clock: environment, inflate: inflateWithZlib, freeAttempts };
    bill = await reserveForRun(reservations, ports, { ...billed, deadlineMs }, { waiting, shard: undefined });
  } catch (error) {
    await reservations.awaitCancel(later.id);
    const { status } = toRefusal(error);
    hold(status === 429 || status === 503, `${later.id} was refused with ${status}: ${String(error)}`);
    if (faults() > faultsBefore) server.losesBudget();
    return { ...nothing, stoodStill: environment.stoodStill };
  }
  server.opened = true;
  return answer(server, { random, call: { ...call, deadlineMs }, asked, bill });
}

/** A cancel before its run: the first of both gets it. */
export const cancelLater = ({ later }: { later: LaterCall }): void => void later.take();
