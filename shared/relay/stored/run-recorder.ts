/**
 * Keeps the answer of a run: its events while it runs, the response at its end. Nobody waits for it, so a store that refuses
 * is asked again for long; must never write over an end that readers may have seen.
 */
import {
  buildFailedResponse,
  renderCreatedFrame,
  framesOf,
  isLastFrame,
} from '../../endpoints/responses/stored-response.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { ErrorObject } from '../../wire/invalid-request.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { Backoff } from '../retry.ts';
import {
  ResponseTooLarge,
  type Run,
  type ResponseStatus,
  type StoredResponse,
  type EventBatch,
  type EventLog,
} from '../ports/stored.ts';
import type { AnswerRecorder } from '../answer/answer.ts';
import { requestIdOf } from './accepted-call.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import { endMark, countStoredEvents } from './reads.ts';
import { mayPass, type RunWatch } from './run-watch.ts';

/** How long the end of an answer is tried to be written. */
const endMsMax = 20_000;
const pauseMsMax = 2_000;

interface KeptRun {
  run: Run;
  claimed: StoredResponse;
  watch: Pick<RunWatch, 'reason' | 'until'>;
  events: Pick<EventWriter, 'wrote' | 'finished'> | undefined;
  /** How long events are kept after the end. */
  eventMinutes: number;
  /** True if the stored call must be kept until it is settled, because another invocation may have to settle it. */
  keepsCall?: boolean | undefined;
}

type RecorderPorts = Pick<ChatPorts, 'clock' | 'random' | 'log' | 'stored'>;

export class RunRecorder implements AnswerRecorder {
  /** As the object says from its acceptance on. */
  readonly stored = true;
  readonly #ports: RecorderPorts;
  readonly #kept: KeptRun;
  #seal: () => string | undefined = () => undefined;
  #isEnded = false;

  constructor(ports: RecorderPorts, kept: KeptRun) {
    this.#ports = ports;
    this.#kept = kept;
  }

  /** @param seal the state of the turn, sealed, once the answer is whole */
  encryptWith(seal: () => string | undefined): this {
    this.#seal = seal;
    return this;
  }

  addTexts(batch: readonly string[]): void {
    this.#kept.events?.wrote(batch.join(''));
  }

  /** The first end stays. */
  async keep(whole: JsonRecord): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { run, watch, events } = this.#kept;
    const { log, stored } = this.#ports;
    const retryWrite = <T>(work: () => Promise<T>): Promise<T> =>
      new Backoff(this.#ports, endMsMax, { pauseMsMax }).until(work);
    try {
      const count = await events?.finished();
      const finish = (status: ResponseStatus): Promise<boolean> => {
        const response = this.#buildResponse(whole, status, count);
        return retryWrite(() => stored.runs.finish(run, response));
      };
      const status = watch.reason === 'cancelled' ? 'cancelled' : (whole['status'] as ResponseStatus);
      if ((await finish(status)) || status === 'cancelled') return;
      const heads = await retryWrite(() => stored.responses.heads(run.account, [run.id]));
      if (heads.get(run.id)?.status === 'cancelled') await finish('cancelled');
    } catch (error) {
      const requestId = requestIdOf(run.id);
      const why = error instanceof ResponseTooLarge ? 'too_large' : 'write_failed';
      const fields = { request_id: requestId, account: run.account, why, background: true };
      log.event('response_not_stored', fields);
      log.fault(requestId, error);
    }
  }

  async finish(failed: JsonRecord | undefined): Promise<void> {
    if (failed) await this.keep(failed);
  }

  /** Stores the failure of a run without an answer. Never rejects. */
  storeFailure(error: ErrorObject): Promise<void> {
    return this.keep(buildFailedResponse(this.#kept.claimed.body.response, error));
  }

  #buildResponse(whole: JsonRecord, status: ResponseStatus, events: number | undefined): StoredResponse {
    const { claimed, run, watch, eventMinutes, keepsCall } = this.#kept;
    const { head, body } = claimed;
    const added = JSON.stringify(whole['output'] ?? []).length - '[]'.length;
    const isWhole = watch.reason === undefined && status !== 'failed';
    const streamed = head.background?.streamed === true;
    const nowSeconds = Math.floor(this.#ports.clock.now() / 1000);
    return {
      head: {
        ...head,
        status,
        conversationLength: head.conversationLength + added,
        background: {
          streamed,
          run: run.run,
          until: watch.until,
          ...(streamed && { events, eventsUntil: nowSeconds + eventMinutes * 60 }),
        },
      },
      body: {
        input: body.input,
        response: status === 'cancelled' ? showCancelled(whole) : whole,
        // The state of a turn that was cut off may be a part of it.
        seal: isWhole ? this.#seal() : undefined,
        ...(keepsCall && { call: body.call }),
      },
    };
  }
}

/** As OpenAI shows it. What was written before stays. */
export const showCancelled = (response: JsonRecord): JsonRecord => ({
  ...response,
  status: 'cancelled',
  completed_at: null,
  error: null,
  incomplete_details: null,
});

/**
 * Keeps the events of a background response while it runs, in batches, for whoever follows it. Must never fail the run,
 * nor write an event once the run's claim has passed: by then readers may have counted them.
 */

/** How long an event waits for others. */
const batchMs = 500;
/** A batch is closed at this length (UTF-16 code units). */
const batchLength = 64 * 1024;
/** How long the store is tried once the run has nothing more to write. */
const finishMs = 5_000;

interface WrittenEvents {
  account: string;
  id: string;
  /** The response as it was accepted: the object that the claim returned. */
  accepted: JsonRecord;
  /** Unix seconds: the latest end of the run, and how long events are kept after it. */
  expires: number;
  /** True while the run's claim is valid, by its own clock. */
  mayWrite: () => boolean;
}

type WriterPorts = Pick<ChatPorts, 'clock' | 'log'> & { events: EventLog };

export type EventWriter = ReturnType<typeof createEventWriter>;

export function createEventWriter({ clock, log, events }: WriterPorts, of: WrittenEvents) {
  const { account, id, accepted, expires, mayWrite } = of;
  /** The frames that wait, their length, and the number of the first of them. */
  let waiting: string[] = [];
  let length = 0;
  let from = 0;
  let writing: Promise<void> | undefined;
  let hurry = new AbortController();
  let triedUntilMs = Infinity;
  let isOver = false;
  /** The number of events that the store has for certain. */
  let keptCount = 0;
  let isBroken = false;

  const isFirst = (): boolean => from + waiting.length === 0;

  function add(frame: string): void {
    if (isOver || isBroken) return;
    waiting.push(frame);
    length += frame.length;
    if (length >= batchLength) hurry.abort('full');
    writing ??= write();
  }

  async function write(): Promise<void> {
    while (waiting.length > 0 && !isBroken) {
      await clock.sleep(batchMs, hurry.signal);
      if (!isOver) hurry = new AbortController();
      await keep(takeBatch());
    }
    writing = undefined;
  }

  /** The next batch. What was tried once is tried again as it was, so that no reader sees two of one event. */
  function takeBatch(): EventBatch {
    let taking = 0;
    const end = waiting.findIndex((frame) => (taking += frame.length) >= batchLength);
    const frames = waiting.splice(0, end < 0 ? waiting.length : end + 1);
    for (const frame of frames) length -= frame.length;
    if (length >= batchLength) hurry.abort('full');
    from += frames.length;
    return { from: from - frames.length, frames };
  }

  async function keep(batch: EventBatch): Promise<void> {
    while (!isBroken) {
      try {
        // A run that stood still may renew its claim yet, if no reader was faster.
        if (!mayWrite()) throw new StoreBusy('no claim');
        await events.append({ account, id }, batch, expires);
        keptCount = batch.from + batch.frames.filter((frame) => frame !== endMark).length;
        return;
      } catch (error) {
        if (!mayPass(error)) log.fault(id, error);
        isBroken = !mayPass(error) || clock.now() >= triedUntilMs;
      }
      if (!isBroken) await clock.sleep(batchMs);
    }
    waiting = [];
  }

  return {
    /** A text of the answer, as its renderer made it. The last event is left out: readers make it of the response. */
    wrote(text: string): void {
      for (const frame of framesOf(text))
        if (!isLastFrame(frame)) add(isFirst() ? renderCreatedFrame(accepted) : frame);
    },
    /**
     * Writes what waits. The number of events, the last included, as the head is to say it. From then on nothing is kept.
     * Never rejects.
     */
    async finished(): Promise<number> {
      if (isFirst()) add(renderCreatedFrame(accepted));
      add(endMark);
      isOver = true;
      triedUntilMs = clock.now() + finishMs;
      hurry.abort('over');
      await writing;
      // A write without a reply may have been seen, so it counts.
      return (await countStoredEvents(events, of).catch(() => Math.max(keptCount, 1))) + 1;
    },
  };
}
