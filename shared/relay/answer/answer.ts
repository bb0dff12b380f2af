/**
 * Streams one answer to one client. The first event decides the status: text of the renderer or the heartbeat
 * (200), or a failure (its own status). The stream is read to its end even when the client has disconnected,
 * because its end reports the usage. Order at the end: last byte, bill, log line.
 */
import { batchesOf, run, withoutEnd } from '../../stream/machine.ts';
import { costsNothing, checkedUsage, flagText, isImplausible } from '../../billing/usage.ts';
import type { Renderer } from '../../endpoints/endpoint.ts';
import type { ErrorObject } from '../../wire/invalid-request.ts';
import type { ChatCall, DispatchedCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { HeldKey } from '../call/idempotency.ts';
import { asRefusal, Refusal, refusalResponse } from '../http/refusal.ts';
import type { RelayResponse } from '../http/http.ts';
import { type Bill, servingFacts } from '../money/bill.ts';
import { callTo } from '../call/serving-channels.ts';
import { Delivery, Heartbeat, ResponseQueue } from './delivery.ts';
import { type RequestLogger, sentHeaders } from './log-line.ts';
import { Meter, type Measure, usageBounds } from './meter.ts';
import type { StopCut } from './stop-cut.ts';
import type { JsonRecord } from '../../wire/json.ts';

/** How much text may wait for a slow client (UTF-16 code units), and how long the client may read nothing. */
const waitingLengthMax = 1024 * 1024;
/**
 * A longer answer (UTF-16 code units) is closed after it was handed over. Until then it counts among its account's calls
 * at once: it fills what buffers there are, and then the host waits with it for a client that takes nothing. Of a
 * shorter one the close waits for no client: it is on its way as the last text is.
 */
const closedFirstLengthMax = 256 * 1024;
/** Time after the request's deadline in which the rest of an answer is handed over. Less than what the host keeps. */
const handOverMs = 3_000;

/** The source of an answer, and the bill and claim that its end closes. */
interface AnswerParts {
  /** A fresh renderer for each beginning of the answer. */
  renderer: () => Renderer;
  dispatch: DispatchedCall;
  logger: RequestLogger;
  bill: Bill;
  /** Undefined: the request has no Idempotency-Key. */
  claim: HeldKey | undefined;
  /** Undefined: the answer is not kept. */
  recorder?: AnswerRecorder | undefined;
  /** A fresh one for each beginning of the answer. What it cuts off is metered. Absent: the call has no stop sequence. */
  stopCut?: (() => StopCut) | undefined;
}

export class Answer {
  readonly #queue = new ResponseQueue(waitingLengthMax);
  readonly #ports: ChatPorts;
  readonly #call: ChatCall;
  readonly #parts: AnswerParts;
  readonly #heartbeat: Heartbeat;
  readonly #delivery: Delivery;
  #renderer: Renderer;
  #meter: Meter;
  /** What became of the first text of the answer. Undefined: there was none, or a JSON answer never became whole. */
  #firstText: 'taken' | 'dropped' | undefined;
  #refusal: Refusal | undefined;
  /** The answer broke off without an end. */
  #unrendered = false;
  #length = 0;
  #firstMs: number | undefined;

  constructor(ports: ChatPorts, call: ChatCall, parts: AnswerParts) {
    this.#ports = ports;
    this.#call = call;
    this.#parts = parts;
    this.#heartbeat = new Heartbeat(ports.clock);
    this.#delivery = new Delivery(ports, this.#queue, call);
    this.#renderer = parts.renderer();
    this.#meter = this.#newMeter();
  }

  /**
   * Reads the whole stream into the response queue, closes the bill and the claim, and waits until the client has the
   * rest: of a long answer before the bill is closed. Never rejects.
   */
  async produce(): Promise<void> {
    const { dispatch, bill, claim, recorder } = this.#parts;
    const stop = new AbortController();
    const push = (text: string): void => this.#push([text]);
    void this.#heartbeat.run({ queue: this.#queue, push }, this.#renderer, stop.signal);
    try {
      await this.#pass();
    } catch (error) {
      await this.#fail(asRefusal(error), error);
    } finally {
      stop.abort('over');
      if (!claim?.keeps) this.#queue.end();
    }
    const report = dispatch.report();
    const measure = this.#measure();
    const { usage, anyContent, flags } = measure;
    const leftEarly = this.#firstText === 'dropped';
    const outcome = { failed: this.#refusal !== undefined, anyContent, leftEarly, usage };
    await claim?.keep(costsNothing(outcome) || this.#unrendered);
    this.#queue.end();
    await recorder?.ended(this.#refusal && this.#renderer.whole?.(this.#refusal.body.error));
    const end = this.#end();
    const { model: answered } = report;
    const serving = servingFacts(report, answered, usage);
    if (this.#length > closedFirstLengthMax) await this.#delivery.handOver(this.#call.deadlineMs);
    const billed = await bill.close({ outcome, flag: flagText(flags), end, answered, serving });
    if (billed.exceeded !== undefined) this.#warnOfCharge(billed.exceeded, billed.charge);
    await claim?.finish(costsNothing(outcome));
    await Promise.all([dispatch.written(), recorder?.written?.()]);
    const durationMs = this.#ports.clock.now() - this.#call.startedMs;
    const ending = { status: this.#status(), end, refusal: this.#refusal, durationMs };
    const isExpected = report.channel?.params.include_usage !== false;
    const implausible = !costsNothing(outcome) && isImplausible(flags, isExpected);
    const call = callTo(this.#call, answered);
    const facts = { call, report, billed, measure: { ...measure, implausible }, ending };
    const heard = { length: this.#length, firstMs: this.#firstMs };
    const logged = this.#parts.logger.answered({ ...facts, reserved: bill.reserved, heard });
    if (this.#queue.committed) {
      await this.#delivery.handOver(this.#call.deadlineMs + handOverMs);
      this.#delivery.cut('deadline');
    }
    await logged;
  }

  /** An answer of which nothing was sent yet begins again when it breaks off, as long as there are candidates. */
  async #pass(): Promise<void> {
    const { dispatch, claim, recorder, renderer, stopCut } = this.#parts;
    const isKept = recorder !== undefined || claim?.keeps === true;
    for (;;) {
      try {
        const metered = run(dispatch.chunks, this.#meter);
        const cut = stopCut?.();
        const shown = isKept ? withoutEnd(this.#renderer) : this.#renderer;
        for await (const batch of run(cut ? run(metered, cut) : metered, shown)) await this.#write(batch);
        if (isKept) await this.#endKept();
        return;
      } catch (error) {
        if (!this.#renderer.sentWhole || !dispatch.another) throw error;
        this.#renderer = renderer();
        this.#meter = this.#newMeter();
      }
    }
  }

  /** What is seen as ended can be read again, or asked for: its items, then the keeping, then the end itself. */
  async #endKept(): Promise<void> {
    const { claim, recorder } = this.#parts;
    const renderer = this.#renderer;
    for (const text of renderer.close?.() ?? []) await this.#write([text]);
    const whole = recorder && renderer.whole?.();
    if (whole) await recorder.keep(whole);
    const last = batchesOf(renderer.end());
    if (claim?.keeps) this.#queue.hold();
    for (const batch of last) await this.#write(batch);
  }

  #newMeter(): Meter {
    const { bill, dispatch } = this.#parts;
    const { quota } = bill;
    return new Meter({
      check: (streamed, isCut) => {
        const report = dispatch.report();
        return checkedUsage(report.usage, {
          ...usageBounds(callTo(this.#call, report.model), report, (request) =>
            bill.inputTokens(request, report.model),
          ),
          streamed,
          isCut: isCut || report.isCut === true,
        });
      },
      quota: quota && ((usage) => quota(usage, dispatch.report().model)),
    });
  }

  /** Content counts once it was passed on: of a JSON answer that broke off, nothing was. */
  #measure(): Measure {
    const measure = this.#meter.measure();
    return { ...measure, anyContent: measure.anyContent && this.#firstText !== undefined };
  }

  #warnOfCharge(reserved: string, charge: string | undefined): void {
    const { identity, key } = this.#call;
    const { model, channel } = this.#parts.dispatch.report();
    this.#ports.log.event('charged_above_reserve', {
      request_id: identity.requestId,
      account: key.account,
      model,
      channel: channel?.id,
      reserved,
      charge,
    });
  }

  /**
   * The response for the host. Resolves when the status is decided. `done`: the promise that `produce`
   * returned.
   */
  async response(done: Promise<void>): Promise<RelayResponse> {
    await this.#queue.opened;
    const { dispatch, bill, claim, recorder } = this.#parts;
    const { requestId } = this.#call.identity;
    const { tried, sent, model } = dispatch.report();
    // The heartbeat commits before anyone knows who answers.
    const isKnown = this.#call.alias !== undefined && this.#firstText !== undefined;
    const attempts = tried.length > 0 && { 'x-relay-attempts': String(tried.length) };
    const facts = {
      ...attempts,
      ...(isKnown && { 'x-relay-model': model }),
      ...sentHeaders(sent),
      ...bill.headers,
      ...recorder?.headers,
    };
    if (this.#refusal && !this.#queue.committed) {
      const { status, headers: own, body } = refusalResponse(this.#refusal, requestId);
      const headers = { ...own, ...facts };
      claim?.answered({ status, headers, body: { text: body } });
      return { status, headers, body, done };
    }
    const headers = {
      'content-type': this.#renderer.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-request-id': requestId,
      ...facts,
    };
    claim?.answered({ status: 200, headers, body: 'written' });
    const closes = (closed: Promise<void>): void => this.#delivery.closes(closed);
    const queue = this.#queue;
    const endsHere = (): boolean => queue.endsHere;
    return { status: 200, headers, body: queue, endsHere, cut: queue.wasCut, closes, done };
  }

  /** A failure that cannot be rendered breaks the connection; the call is closed all the same. */
  async #fail(thrownRefusal: Refusal, error: unknown): Promise<void> {
    const fault = (thrown: unknown): void => this.#ports.log.fault(this.#call.identity.requestId, thrown);
    const refusal = this.#inTermsOfEndpoint(thrownRefusal);
    this.#refusal = refusal;
    const { error: shown } = refusal.body;
    if (shown.code === 'internal') fault(error);
    if (!this.#queue.committed) return;
    try {
      await this.#keepFailed(shown);
      if (this.#parts.claim?.keeps) this.#queue.hold();
      this.#push([this.#renderer.failed(shown)]);
    } catch (broken) {
      fault(broken);
      this.#unrendered = true;
      this.#delivery.cut('unrendered');
    }
  }

  /** What a client has seen begin it can read again, whatever became of it. One that is sent whole has shown nothing. */
  async #keepFailed(error: ErrorObject): Promise<void> {
    const { recorder } = this.#parts;
    const whole = recorder && !this.#renderer.sentWhole && this.#renderer.whole?.(error);
    if (whole) await recorder.keep(whole);
  }

  #inTermsOfEndpoint(refusal: Refusal): Refusal {
    const { tooLarge } = this.#renderer;
    if (refusal.status !== 413 || !tooLarge) return refusal;
    const { status, code } = tooLarge;
    const { headers, reason } = refusal;
    return new Refusal(status, { ...refusal.body.error, code }, { headers, reason });
  }

  /** No heartbeat comes between the texts of a batch. */
  async #write(batch: readonly string[]): Promise<void> {
    await this.#delivery.room();
    this.#firstText ??= this.#queue.clientLeft ? 'dropped' : 'taken';
    this.#firstMs ??= this.#ports.clock.now();
    this.#push(batch);
    for (const text of batch) this.#length += text.length;
    this.#heartbeat.wrote();
  }

  #push(batch: readonly string[]): void {
    const { recorder, claim } = this.#parts;
    for (const text of batch) {
      claim?.wrote(text);
      if (claim?.keeps === false) this.#queue.release();
      this.#queue.push(text);
    }
    recorder?.wrote(batch);
  }

  #status(): number {
    return this.#refusal && !this.#queue.committed ? this.#refusal.status : 200;
  }

  #end(): string {
    if (this.#refusal) return 'failed';
    return this.#queue.clientLeft ? 'client_gone' : 'completed';
  }
}

// What an answer tells whoever keeps it. A recorder must never fail an answer, nor change it beyond saying that it is kept.

export interface AnswerRecorder {
  /** What of the keeping is said in headers, if they go out after `keep`. Absent: nothing. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts of the answer that belong together, in order, heartbeats included, whether or not the client still takes them. */
  wrote(batch: readonly string[]): void;
  /**
   * The whole answer, after its items and before its end are sent: resolves when it can be read by others, or will not
   * be. The same of an answer that fails after its client has seen it begin. Never rejects.
   */
  keep(whole: JsonRecord): Promise<void>;
  /** After the last text. `failed`: the answer as it failed, whether or not it was kept. Never rejects. */
  ended(failed: JsonRecord | undefined): Promise<void>;
  /** What is left to do once the call is paid. Never rejects; absent: nothing. */
  written?(): Promise<void>;
}
