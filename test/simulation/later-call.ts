import { zlibInflate } from '../../shared/adapters/system/node-ports.ts';
import { Bill } from '../../shared/relay/money/bill.ts';
import { Refusal } from '../../shared/relay/http/refusal.ts';
import { StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import {
  releaseWaiting,
  takeOver,
  type HandedReservation,
  type Waiting,
} from '../../shared/relay/stored/handed-call.ts';
import { answer, type AcceptedCall, type CallReport } from './call.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Server } from './server.ts';
import { hold } from './watch.ts';

/** A stored response, of which the store says at any time whose it is. */
export class LaterCall {
  readonly accepted: AcceptedCall;
  /** One conditional write: of all events and cancels one is first. */
  #isTaken = false;

  constructor(accepted: AcceptedCall) {
    this.accepted = accepted;
  }

  get id(): string {
    return this.accepted.call.identity.requestId;
  }

  /** Whether this is who has it now: a run, or a cancel before any run. */
  take(): boolean {
    const isFirst = !this.#isTaken;
    this.#isTaken = true;
    return isFirst;
  }

  get waiting(): Waiting | undefined {
    const { call, handed } = this.accepted;
    const { account } = call.key;
    return handed === undefined
      ? undefined
      : { account, id: this.id, handed: JSON.parse(handed) as HandedReservation };
  }
}

const beginsWithinMs = 60_000;

/** One delivery of its event. Undefined: there was nothing to do, or it is not known what became of it. */
export async function runLater(
  server: Server,
  { later, random, longestMs }: { later: LaterCall; random: SeededRandom; longestMs: number },
): Promise<CallReport | undefined> {
  const { environment, ports, reservations, mutation } = server;
  await environment.sleep(random.integer(0, 200));
  if (!later.take()) return undefined;
  // The claim's reply comes later, or to an environment that has stood still.
  await environment.sleep(random.integer(0, 200));
  const { call, asked } = later.accepted;
  const { waiting } = later;
  server.call = call;
  const nothing = { id: later.id, account: asked.account, refused: true };
  if (environment.now() > call.startedMs + beginsWithinMs) {
    if (waiting) await releaseWaiting(ports, waiting, true);
    return { ...nothing, stoodStill: environment.stoodStill };
  }
  const deadlineMs = environment.now() + longestMs;
  try {
    const reservation = waiting && (await takeOver(ports, waiting, deadlineMs));
    if (waiting && !reservation) return { ...nothing, stoodStill: environment.stoodStill };
    const bill = await Bill.resume(
      reservations,
      { clock: environment, inflate: zlibInflate },
      { call: { ...call, deadlineMs }, reservation },
    );
    server.opened = true;
    return await answer(server, { random, call: { ...call, deadlineMs }, asked, bill });
  } catch (error) {
    const isOutgrown = error instanceof Refusal && error.reason === 'hold_outgrown';
    if (!(error instanceof StoreUnavailable) && !isOutgrown) throw error;
    // Nothing is edited here, so only a wrong product holds too little.
    hold(
      !isOutgrown || mutation !== undefined,
      `${later.id} is refused, since it has outgrown what it holds`,
    );
    if (waiting) await releaseWaiting(ports, waiting, true);
    return isOutgrown ? nothing : undefined;
  }
}

/** A cancel before its run: whoever is first takes it. */
export async function cancelLater(
  { environment, ports }: Server,
  { later, random }: { later: LaterCall; random: SeededRandom },
): Promise<void> {
  if (!later.take()) return;
  await environment.sleep(random.integer(0, 200));
  if (later.waiting) await releaseWaiting(ports, later.waiting);
}
