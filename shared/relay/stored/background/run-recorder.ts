/**
 * Keeps the answer of a run: its events while it runs, the response at its end. Nobody waits for it, so a store that refuses
 * is asked again for long; must never write over an end that readers may have seen.
 */
import { failedResponse } from '../../../endpoints/responses/stored/shown-response.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { ErrorObject } from '../../../wire/public/error-body.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import { Backoff } from '../../money/backoff.ts';
import { ResponseTooLarge } from '../../ports/stored/response-store.ts';
import type { Run } from '../../ports/stored/run-store.ts';
import type { ResponseHead, ResponseStatus, StoredResponse } from '../../ports/stored/stored-response.ts';
import type { AnswerRecorder } from '../../answer/answer-recorder.ts';
import type { EventWriter } from '../events/event-writer.ts';
import { requestIdOf } from './handed-call.ts';
import type { RunWatch } from './run-watch.ts';

/** How long the end of an answer is tried to be written. */
const endMsMax = 20_000;
const pauseMsMax = 2_000;

export interface KeptRun {
  run: Run;
  claimed: StoredResponse;
  watch: Pick<RunWatch, 'reason' | 'until'>;
  /** Undefined: nobody may follow its events. */
  events: Pick<EventWriter, 'wrote' | 'finished'> | undefined;
  /** How long events are kept after the end. */
  eventMinutes: number;
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
  sealing(seal: () => string | undefined): this {
    this.#seal = seal;
    return this;
  }

  wrote(batch: readonly string[]): void {
    this.#kept.events?.wrote(batch.join(''));
  }

  async keep(whole: JsonRecord): Promise<void> {
    await this.#end(whole);
  }

  async ended(failed: JsonRecord | undefined): Promise<void> {
    if (failed) await this.#end(failed);
  }

  /** Of a run that has no answer. Never rejects. */
  async fails(error: ErrorObject): Promise<void> {
    await this.#end(failedResponse(this.#kept.claimed.body.response, error));
  }

  async #end(whole: JsonRecord): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { run, watch, events } = this.#kept;
    const requestId = requestIdOf(run.id);
    try {
      const count = await events?.finished();
      const status = watch.reason === 'cancelled' ? 'cancelled' : (whole['status'] as ResponseStatus);
      if ((await this.#finish(this.#response(whole, status, count))) || status === 'cancelled') return;
      const head = await this.#head();
      if (head?.status === 'cancelled') await this.#finish(this.#response(whole, 'cancelled', count));
    } catch (error) {
      const why = error instanceof ResponseTooLarge ? 'too_large' : 'write_failed';
      const fields = { request_id: requestId, account: run.account, why, background: true };
      this.#ports.log.event('response_not_stored', fields);
      this.#ports.log.fault(requestId, error);
    }
  }

  #finish(response: StoredResponse): Promise<boolean> {
    const { runs } = this.#ports.stored;
    return this.#repeated(() => runs.finish(this.#kept.run, response));
  }

  async #head(): Promise<ResponseHead | undefined> {
    const { account, id } = this.#kept.run;
    const heads = await this.#repeated(() => this.#ports.stored.responses.heads(account, [id]));
    return heads.get(id);
  }

  #repeated<T>(call: () => Promise<T>): Promise<T> {
    return new Backoff(this.#ports, endMsMax, pauseMsMax).until(call);
  }

  #response(whole: JsonRecord, status: ResponseStatus, events: number | undefined): StoredResponse {
    const { claimed, run, watch, eventMinutes } = this.#kept;
    const { head, body } = claimed;
    const added = JSON.stringify(whole['output'] ?? []).length - emptyLength;
    const isWhole = watch.reason === undefined && status !== 'failed';
    const streamed = head.background?.streamed === true;
    return {
      head: {
        ...head,
        status,
        conversationLength: head.conversationLength + added,
        background: {
          streamed,
          run: run.run,
          until: watch.until,
          ...(streamed && { events, eventsUntil: this.#nowSeconds() + eventMinutes * 60 }),
        },
      },
      body: {
        input: body.input,
        response: status === 'cancelled' ? cancelledResponse(whole) : whole,
        // The state of a turn that was cut off may be a part of it.
        seal: isWhole ? this.#seal() : undefined,
      },
    };
  }

  #nowSeconds(): number {
    return Math.floor(this.#ports.clock.now() / 1000);
  }
}

const emptyLength = '[]'.length;

/** As OpenAI shows it. What was written before stays. */
export const cancelledResponse = (response: JsonRecord): JsonRecord => ({
  ...response,
  status: 'cancelled',
  completed_at: null,
  error: null,
  incomplete_details: null,
});
