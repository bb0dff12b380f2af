/**
 * Finishes calls in background windows. A schedule polls each vendor, so that no function waits. Every step is safe to repeat, concurrently
 * and after a crash at any point: the run's item is removed last, and money moves by one conditional close.
 *
 *     submitted --(every minute; after 10 every 5)-----> asked --- still running, or no reply ----------> submitted
 *                                                          |
 *        the vendor has ended it --- the response is stored, then the call settled by its usage ------> over
 *        it failed, expired or is lost ------------ the response fails, nothing is charged -----------> over
 *        cancelled by its client, or an hour late: the vendor is asked to cancel, then as above
 *        deleted, found dead, or no reply for a quarter of an hour after that:
 *                              the lease ends, and the sweeper charges the input ---------------------> over
 */
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { JsonRecord } from '../wire/json.ts';
import { hash53 } from '../wire/ids.ts';
import { createRunEdge, drain, endOfWaiting, prepareRun } from './background-run.ts';
import { askVendor } from './dispatch/submitted-call.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import { applyLimits, createRelay, handleCall, reserveWithStates, type RelayDeps } from './lifecycle.ts';
import { restoreBill } from './money/bill.ts';
import { restoreReservation } from './money/open-reservation.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { ResponseHead, WaitingRun } from './ports/stored.ts';
import { retry, workOnEach } from './retry.ts';
import { requestIdOf } from './stored/accepted-call.ts';

const atOnceMax = 32;
/** At least twice in ten minutes: a vendor keeps an answer that it may not store only that long. */
const slowPollMinutes = 5;
const frequentSeconds = 10 * 60;
/** How long it may take to finish one call. */
const endMsMax = 5 * 60 * 1000;

/** Returns a function that polls every run that is due. Rejects only if the store can't list the runs. */
export function createWindowPolls(ports: ChatPorts, endpoint: Endpoint): () => Promise<void> {
  const relay = createRelay(ports, endpoint);
  return async () => {
    const runs = await retry(ports, () => ports.stored.waiting.list());
    if (runs.length === 0) return;
    const snapshot = await ports.config.current();
    const minute = Math.floor(ports.clock.now() / 60_000);
    const due = runs.filter((run) => isDue(run, minute));
    const pollOrLog = (run: WaitingRun): Promise<void> =>
      poll(relay, snapshot, run).catch((error: unknown) => ports.log.fault(requestIdOf(run.id), error));
    await workOnEach(due, pollOrLog, atOnceMax);
  };
}

const isDue = ({ id, submitted }: WaitingRun, minute: number): boolean =>
  minute * 60 - submitted < frequentSeconds || (minute + hash53(id)) % slowPollMinutes === 0;

async function poll(relay: RelayDeps, snapshot: Snapshot, run: WaitingRun): Promise<void> {
  const { ports } = relay;
  const { account, id, vendor, submitted, deadline } = run;
  const { responses, runs } = ports.stored;
  const nowSeconds = Math.floor(ports.clock.now() / 1000);
  const head = (await retry(ports, () => responses.heads(account, [id]))).get(id);
  const channel = findVendorChannel(snapshot, run);
  const ask = async (cancels: boolean) => channel && askVendor(ports, channel, { vendor, cancels });
  if (!head) {
    await ask(true);
    return abandonRun(relay, run);
  }
  if (isKept(head)) return finish(relay, snapshot, run);
  const isStopped = head.status !== 'in_progress' || nowSeconds >= deadline;
  const reply = await ask(isStopped);
  // A response created a moment ago may not be found yet.
  const isUnclear = !reply || (reply.id === '' && nowSeconds - submitted < frequentSeconds);
  if (!isUnclear && !reply.isRunning) {
    const isDead = head.status === 'failed' && reply.response['status'] !== 'failed';
    return isDead ? abandonRun(relay, run) : finish(relay, snapshot, run, { head, answer: reply.response });
  }
  if (nowSeconds >= endOfWaiting(run)) return abandonRun(relay, run);
  const until = head.background?.until ?? 0;
  if (until < endOfWaiting(run)) await retry(ports, () => runs.renew(run, endOfWaiting(run)));
}

/** A disabled channel takes no new calls, but its vendor still answers calls that it accepted before. A deleted channel can't be polled. */
const findVendorChannel = ({ channels, drainingChannels = [] }: Snapshot, { vendor }: WaitingRun) =>
  [...channels, ...drainingChannels].find(({ id }) => id === vendor.channel);

/** True if an invocation died after it had stored the answer. */
const isKept = ({ status }: ResponseHead): boolean => status === 'completed' || status === 'incomplete';

/** Ends the lease, so that the sweeper closes the reservation like that of a crashed call. */
async function abandonRun({ ports, reservations }: RelayDeps, run: WaitingRun): Promise<void> {
  const nowMs = ports.clock.now();
  await reservations.moveLeaseEnd(restoreReservation(run.reservation, nowMs), Math.floor(nowMs / 1000));
  ports.log.event('background_lost', { request_id: requestIdOf(run.id), account: run.account });
  await retry(ports, () => ports.stored.waiting.remove(run));
}

/**
 * Answers the call with its vendor's response, in the same way as every other call. Only this channel may answer, with its current row,
 * whatever else was edited.
 * @param asked default: the stored response is the answer
 */
async function finish(
  relay: RelayDeps,
  snapshot: Snapshot,
  run: WaitingRun,
  asked?: { head: ResponseHead; answer: JsonRecord },
): Promise<void> {
  const { ports } = relay;
  const { account, id, vendor, reservation } = run;
  const response = (await retry(ports, () => ports.stored.responses.read(account, [id]))).get(id);
  const channel = findVendorChannel(snapshot, run);
  if (!response || !channel) return abandonRun(relay, run);
  const { model, secret } = vendor;
  const served = {
    ...channel,
    models: [model],
    secret,
    params: { ...channel.params, completion_windows: 'submit' as const },
  };
  const answering = createAnsweringRelay(relay, asked?.answer ?? response.body.response);
  const hostDeadlineMs = ports.clock.now() + endMsMax;
  const claimed = prepareRun(answering.ports, {
    response,
    snapshot: { ...snapshot, channels: [served], models: [model] },
    event: { account, id, run: run.run, hostDeadlineMs },
    isAnswered: true,
  });
  if (asked?.head.status === 'cancelled') claimed.watch.markCancelled();
  const restored = restoreReservation(reservation, hostDeadlineMs);
  const edge = createRunEdge(answering, claimed);
  let isReserved = false;
  await drain(
    await handleCall(answering, {
      ...edge,
      async reserve(checked) {
        const restore = () => restoreBill(relay.reservations, ports, checked.call, restored);
        const held = applyLimits(checked, await reserveWithStates(ports, checked, restore));
        isReserved = true;
        return held;
      },
      // The hours at the vendor do not count as time to first content.
      makeStoppable: (dispatched) => ({
        chunks: dispatched.chunks,
        report: () => ({ ...dispatched.report(), firstContentMs: undefined }),
        awaitWrites: () => dispatched.awaitWrites(),
      }),
    }),
  );
  if (!isReserved) return abandonRun(relay, run);
  await retry(ports, () => ports.stored.waiting.remove(run));
}

/** Creates a relay whose only upstream returns this answer. A cooldown of the channel must not keep the answer from its client. */
function createAnsweringRelay(relay: RelayDeps, answer: JsonRecord): RelayDeps {
  const bytes = new TextEncoder().encode(JSON.stringify(answer));
  async function* body(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  const ports: ChatPorts = {
    ...relay.ports,
    transport: { send: () => Promise.resolve({ status: 200, headers: {}, body: body() }) },
    secrets: { ...relay.ports.secrets, read: () => Promise.resolve('') },
    health: { entries: () => Promise.resolve(new Map()), change: () => Promise.resolve(true) },
  };
  return { ...relay, ports, health: new HealthRecorder(ports) };
}
