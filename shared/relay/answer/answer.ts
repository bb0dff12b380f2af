/**
 * Streams one answer to one client, and reports how it ended. The first event decides the status: text of the renderer or
 * the heartbeat (200), or a failure (its own status). The stream is read to its end even when the client has disconnected,
 * because its end reports the usage. What is seen as ended can be read again, or asked for: the answer is kept before its
 * last text is sent. Must not close what its call holds: that is done by whoever has its report.
 */
import { batchesOf, run, withoutEnd } from '../../stream/machine.ts';
import { type AnswerOutcome, costsNothing } from '../../billing/usage.ts';
import { idleMs, type EndpointRequest, type Renderer, type SentFacts } from '../../endpoints/endpoint.ts';
import type { JsonRecord } from '../../wire/json.ts';
import { InvalidRequest, type ErrorObject } from '../../wire/invalid-request.ts';
import type { ChatCall, DispatchedCall, DispatchReport } from '../call/call.ts';
import type { RelayResponse } from '../http/http.ts';
import { toRefusal, Refusal, respondRefusal, type AnswerForm } from '../http/refusal.ts';
import type { Bill } from '../money/bill.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { StoredResult } from '../ports/stored.ts';
import { createThreadId } from '../state/thread-ids.ts';
import type { TurnRecorder } from '../state/turn-states.ts';
import { Delivery, ResponseQueue } from './delivery.ts';
import { StopCut } from './stop-cut.ts';
import { type Measure, Meter } from './meter.ts';

/** How much text may wait for a slow client (UTF-16 code units), and how long the client may read nothing. */
const waitingLengthMax = 1024 * 1024;

/** The parts of an answer, and what they report while it is made. */
export interface AnswerInput {
  /** As its endpoint read it. */
  read: Pick<EndpointRequest, 'renderer' | 'keepsState' | 'storage'>;
  dispatch: DispatchedCall;
  bill: Bill;
  claim: ResultKeeper | undefined;
  /** Creates the recorder that stores the answer. `seal` encrypts the turn state, if there is any. */
  recorder: ((seal: () => string | undefined) => AnswerRecorder) | undefined;
  /** The answer is committed at once, so that every failure is rendered. */
  commitsAtOnce: boolean;
  form: AnswerForm;
}

/** The part of an idempotency claim that an answer uses. */
export interface ResultKeeper {
  /** The longest answer that is kept for repeats, in UTF-16 code units. Zero: none is. */
  readonly keepsUpTo: number;
  /**
   * Keeps what a repeat gets, before its end is shown and it is charged. Resolves when it can be read, or will not be. Never
   * rejects.
   */
  keep(result: Omit<StoredResult, 'requestId'> | 'too_large'): Promise<void>;
}

export interface AnswerReport {
  report: DispatchReport;
  measure: Measure;
  outcome: AnswerOutcome;
  /** `completed`, `failed`, `client_gone`. */
  end: string;
  status: number;
  refusal: Refusal | undefined;
  /** UTF-16 code units that its renderer wrote. */
  length: number;
  /** When it wrote the first of them, in epoch milliseconds. */
  firstMs: number | undefined;
}

/** Stores an answer. A recorder must never fail an answer, nor change it except to say that it is stored. */
export interface AnswerRecorder {
  /** True if the answer can be read again, as far as is known now. */
  readonly stored: boolean;
  /** Headers about the kept answer, if they can still be sent after `keep`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts of the answer that belong together, in order, heartbeats included, whether or not the client still takes them. */
  addTexts(batch: readonly string[]): void;
  /**
   * The whole answer, after its items and before its end are sent: resolves when it can be read by others, or will not
   * be. The same of an answer that fails after its client has seen it begin. Never rejects.
   */
  keep(whole: JsonRecord): Promise<void>;
  /** After the last text. `failed`: the answer as it failed, whether or not it was kept. Never rejects. */
  finish(failed: JsonRecord | undefined): Promise<void>;
  /** Remaining work after the call is paid. Never rejects. */
  awaitWrites?(): Promise<void>;
}

/** Loads the code of turn states where the call may have some. */
export async function createAnswer(ports: ChatPorts, call: ChatCall, input: AnswerInput): Promise<Answer> {
  const { dispatch, read } = input;
  const { request } = call;
  const clientKeeps = read.keepsState === true;
  // Only turns that call tools have state to keep, but a client that keeps it itself gets that of every turn, and so has every stored one.
  const keepsState = clientKeeps || (request.tools?.length ?? 0) > 0 || read.storage !== undefined;
  const states = keepsState ? await import('../state/turn-states.ts') : undefined;
  const hasStops = (request.stop?.length ?? 0) > 0;
  return new Answer(ports, call, {
    ...input,
    turn: states && new states.TurnRecorder(ports, { call, dispatch, clientKeeps }),
    stopCut: hasStops ? () => new StopCut(() => dispatch.report().sent.stop) : undefined,
  });
}

interface LoadedInput extends AnswerInput {
  turn: TurnRecorder | undefined;
  /**
   * A fresh cut for each start of the answer, if the call has stop sequences. Text that it removes is still
   * metered.
   */
  stopCut: (() => StopCut) | undefined;
}

export class Answer {
  /** The way to its client. */
  readonly delivery: Delivery;
  readonly #queue = new ResponseQueue(waitingLengthMax);
  readonly #ports: ChatPorts;
  readonly #call: ChatCall;
  readonly #input: LoadedInput;
  readonly #recorder: AnswerRecorder | undefined;
  #renderer: Renderer;
  #meter: Meter;
  #cut: StopCut | undefined;
  /** Tells if the first text was taken or dropped. A JSON answer that never becomes whole has none. */
  #firstText: 'taken' | 'dropped' | undefined;
  #refusal: Refusal | undefined;
  /** The answer broke off without an end. */
  #unrendered = false;
  #length = 0;
  #firstMs: number | undefined;
  /** When text was written, or else when it began. */
  #lastTextMs: number;
  /** Status and headers, from the first text on. */
  #head: Pick<RelayResponse, 'status' | 'headers'> | undefined;
  /** The texts so far, as long as they may be kept for repeats. */
  #texts: string[] = [];
  #textsLength = 0;

  constructor(ports: ChatPorts, call: ChatCall, input: LoadedInput) {
    this.#ports = ports;
    this.#call = call;
    this.#input = input;
    // The item that has the state of a stored turn: no client sees it. Of a turn that was cut off, the upstream's is another.
    const item = `rs_${call.identity.requestId}_state`;
    this.#recorder = input.recorder?.(() => (this.#cut?.ended ? undefined : input.turn?.encryptState(item)));
    this.#lastTextMs = ports.clock.now();
    this.delivery = new Delivery(ports, this.#queue, call);
    this.#meter = new Meter(call, input);
    this.#renderer = this.#createRenderer();
  }

  /** True once text was sent, so the client has a status. */
  get committed(): boolean {
    return this.#queue.committed;
  }

  /** Independent writes that belong to the answer: health, learned facts, states, the stored answer. */
  listWrites(): (Promise<void> | undefined)[] {
    const { dispatch, turn } = this.#input;
    return [dispatch.awaitWrites(), turn?.awaitWrites(), this.#recorder?.awaitWrites?.()];
  }

  /** Reads the whole stream into the response queue. Resolves when its last text is on its way. Never rejects; to be called once. */
  async stream(): Promise<AnswerReport> {
    const stop = new AbortController();
    let isUnfit = false;
    this.#keepAlive(stop.signal).catch(this.#fault);
    try {
      await this.#pass();
    } catch (error) {
      isUnfit = error instanceof InvalidRequest;
      await this.#fail(toRefusal(error), error);
    } finally {
      stop.abort('over');
    }
    const refusal = this.#refusal;
    const measure = this.#measure();
    const { usage, anyContent } = measure;
    const leftEarly = this.#firstText === 'dropped';
    // A whole answer that its client's form cannot hold did not fail: its upstream charges for it.
    const failed = refusal !== undefined && !(isUnfit && measure.isWhole);
    const outcome = { failed, anyContent, leftEarly, usage };
    // An error here must not keep the bill open.
    if (!costsNothing(outcome) && !this.#unrendered) await this.#keepResult().catch(this.#fault);
    this.#queue.end();
    await this.#recordEnd(refusal).catch(this.#fault);
    return {
      report: this.#input.dispatch.report(),
      measure,
      outcome,
      end: refusal ? 'failed' : this.#queue.clientLeft ? 'client_gone' : 'completed',
      status: this.#findRefusal()?.status ?? 200,
      refusal,
      length: this.#length,
      firstMs: this.#firstMs,
    };
  }

  readonly #fault = (error: unknown): void => this.#ports.log.fault(this.#call.identity.requestId, error);

  async #recordEnd(refusal: Refusal | undefined): Promise<void> {
    await this.#recorder?.finish(refusal && this.#renderer.whole?.(refusal.body.error));
  }

  /** Commits a silent answer with a heartbeat, then sends one after each `idleMs` of silence. */
  async #keepAlive(stop: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const renderer = this.#renderer;
    const commitAtMs = this.#lastTextMs + renderer.commitAfterMs;
    while (!stop.aborted) {
      const waitMs = (this.#queue.committed ? this.#lastTextMs + idleMs : commitAtMs) - clock.now();
      // No longer at once, since text may commit the answer meanwhile.
      if (waitMs > 0) await clock.sleep(Math.min(waitMs, idleMs), stop);
      else {
        this.#push([renderer.idle()]);
        this.#lastTextMs = clock.now();
      }
    }
  }

  /** An answer of which nothing was sent yet begins again when it breaks off, as long as there are candidates. */
  async #pass(): Promise<void> {
    const { dispatch, turn, stopCut } = this.#input;
    const isKept = this.#recorder !== undefined || this.#keepsResult;
    for (;;) {
      try {
        const metered = run((turn ?? dispatch).chunks, this.#meter);
        this.#cut = stopCut?.();
        const shown = isKept ? withoutEnd(this.#renderer) : this.#renderer;
        const chunks = this.#cut ? run(metered, this.#cut) : metered;
        for await (const batch of run(chunks, shown)) await this.#write(batch);
        if (isKept) await this.#endKept();
        return;
      } catch (error) {
        if (!this.#renderer.sentWhole || !dispatch.report().another) throw error;
        this.#meter = new Meter(this.#call, this.#input);
        this.#renderer = this.#createRenderer();
      }
    }
  }

  /** Its items, then the keeping, then the end itself. */
  async #endKept(): Promise<void> {
    const renderer = this.#renderer;
    for (const text of renderer.close?.() ?? []) await this.#write([text]);
    const whole = this.#recorder && renderer.whole?.();
    if (whole) await this.#recorder?.keep(whole);
    const last = batchesOf(renderer.end());
    if (this.#keepsResult) this.#queue.hold();
    for (const batch of last) await this.#write(batch);
  }

  /** A failure that cannot be rendered breaks the connection; the call is closed all the same. */
  async #fail(thrownRefusal: Refusal, error: unknown): Promise<void> {
    const refusal = this.#translateRefusal(thrownRefusal);
    this.#refusal = refusal;
    const { error: shown } = refusal.body;
    if (shown.code === 'internal') this.#fault(error);
    if (!this.#queue.committed) return;
    try {
      await this.#keepFailed(shown);
      if (this.#keepsResult) this.#queue.hold();
      this.#push([this.#renderer.failed(shown, refusal)]);
    } catch (broken) {
      this.#fault(broken);
      this.#unrendered = true;
      this.delivery.cut('unrendered');
    }
  }

  /**
   * A client that saw the start of an answer can read it later, whatever happened. An answer sent whole has shown
   * nothing yet.
   */
  async #keepFailed(error: ErrorObject): Promise<void> {
    const recorder = this.#recorder;
    const whole = recorder && !this.#renderer.sentWhole && this.#renderer.whole?.(error);
    if (whole) await recorder.keep(whole);
  }

  /** The answer may be kept for repeats: its end is to be seen when one would get it. */
  get #keepsResult(): boolean {
    const { keepsUpTo = 0 } = this.#input.claim ?? {};
    return keepsUpTo > 0 && this.#textsLength <= keepsUpTo;
  }

  /** Keeps the result even if the client got only part of it. */
  async #keepResult(): Promise<void> {
    const { claim } = this.#input;
    const refused = this.#findRefusal();
    const { status, headers } = this.#head ?? refused ?? this.#buildHead();
    const body = refused?.body ?? this.#texts.join('');
    await claim?.keep(this.#keepsResult ? { status, headers, body } : 'too_large');
  }

  #createRenderer(): Renderer {
    const { dispatch, read, turn, commitsAtOnce } = this.#input;
    const renderer = read.renderer(this.#call.identity, {
      now: () => Math.floor(this.#ports.clock.now() / 1000),
      sent: () => dispatch.report().sent,
      model: () => dispatch.report().model,
      usage: () => this.#meter.measure().usage,
      sealedState: (...of) =>
        read.keepsState === true && !this.#cut?.ended ? turn?.encryptState(...of) : undefined,
      threadId: (id) => this.#createThreadId(id),
      stored: () => this.#recorder?.stored ?? false,
      stoppedAt: () => this.#cut?.endedAt ?? dispatch.report().sent.stoppedAt,
      opaqueParts: () => dispatch.report().state?.parts.filter((part) => 'opaque' in part).length ?? 0,
    });
    return commitsAtOnce ? { ...renderer, commitAfterMs: 0 } : renderer;
  }

  /** Seals the most that the next turn reads before its own messages: the input of this turn plus its output limit. */
  #createThreadId(id: string): string | undefined {
    const { origin, sent } = this.#input.dispatch.report();
    const { prompt_tokens: tokens } = this.#meter.measure().usage;
    if (!origin || !sent.holdsThread || typeof sent.outputTokensMax !== 'number') return undefined;
    const thread = { id, origin, tokens, tokensMax: tokens + sent.outputTokensMax };
    return createThreadId(this.#ports.sealer, this.#call.key.account, thread);
  }

  /** Content counts once it was passed on: of a JSON answer that broke off, nothing was. */
  #measure(): Measure {
    const measure = this.#meter.measure();
    return { ...measure, anyContent: measure.anyContent && this.#firstText !== undefined };
  }

  /** The response for the host. Resolves when the status is decided. */
  async respond(): Promise<Omit<RelayResponse, 'done'>> {
    await this.#queue.opened;
    const refused = this.#findRefusal();
    if (refused) return refused;
    const queue = this.#queue;
    return {
      ...(this.#head ?? this.#buildHead()),
      body: queue,
      endsHere: () => queue.endsHere,
      cut: queue.wasCut,
      closes: (closed) => this.delivery.closes(closed),
    };
  }

  /** The refusal, if the answer failed before its first text. */
  #findRefusal(): (Pick<RelayResponse, 'status' | 'headers'> & { body: string }) | undefined {
    if (!this.#refusal || this.#queue.committed) return undefined;
    const { requestId } = this.#call.identity;
    const { status, headers, body } = respondRefusal(this.#refusal, requestId, this.#input.form);
    return { status, headers: { ...headers, ...this.#collectHeaders() }, body };
  }

  #buildHead(): Pick<RelayResponse, 'status' | 'headers'> {
    const headers = {
      'content-type': this.#renderer.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-request-id': this.#call.identity.requestId,
      ...this.#input.form.answerHeaders?.(this.#call.identity.requestId, this.#input.bill.budget),
      ...this.#collectHeaders(),
    };
    return { status: 200, headers };
  }

  #collectHeaders(): Record<string, string> {
    const { tried, sent, model } = this.#input.dispatch.report();
    // The heartbeat commits before anyone knows who answers.
    const isKnown = this.#call.alias !== undefined && this.#firstText !== undefined;
    return {
      ...(tried.length > 0 && { 'x-relay-attempts': String(tried.length) }),
      ...(isKnown && { 'x-relay-model': model }),
      ...buildSentHeaders(sent),
      ...this.#input.bill.headers,
      ...this.#recorder?.headers,
    };
  }

  #translateRefusal(refusal: Refusal): Refusal {
    const { tooLarge } = this.#renderer;
    if (refusal.status !== 413 || !tooLarge) return refusal;
    const { status, code } = tooLarge;
    return new Refusal(status, { ...refusal.body.error, code }, refusal);
  }

  /** No heartbeat comes between the texts of a batch. */
  async #write(batch: readonly string[]): Promise<void> {
    await this.delivery.awaitRoom();
    this.#firstText ??= this.#queue.clientLeft ? 'dropped' : 'taken';
    this.#firstMs ??= this.#ports.clock.now();
    this.#push(batch);
    for (const text of batch) this.#length += text.length;
    this.#lastTextMs = this.#ports.clock.now();
  }

  #push(batch: readonly string[]): void {
    for (const text of batch) {
      if (text !== '') this.#head ??= this.#buildHead();
      if (this.#input.claim) this.#collect(text);
      this.#queue.push(text);
    }
    this.#recorder?.addTexts(batch);
  }
  /** An answer that is too long to keep is released at once. */
  #collect(text: string): void {
    this.#textsLength += text.length;
    if (this.#keepsResult) this.#texts.push(text);
    else {
      this.#texts = [];
      this.#queue.release();
    }
  }
}

// Says in headers and log what became of a call's fields. Clients choose names of fields, so names are checked.

const namesMax = 20;
const name = /^[\w.[\]-]{1,64}$/;

/** The fields that were not sent, each once. */
export function listDroppedNames({ dropped }: Pick<SentFacts, 'dropped'>): string[] | undefined {
  const names = [...new Set(dropped)].filter((field) => name.test(field)).slice(0, namesMax);
  return names.length > 0 ? names : undefined;
}

export function buildSentHeaders(sent: SentFacts): Record<string, string> {
  const { effort = '', toolChoice = '' } = sent;
  const dropped = listDroppedNames(sent);
  return {
    ...(dropped && { 'x-relay-dropped': dropped.join(', ') }),
    ...(name.test(effort) && { 'x-relay-effort': effort }),
    ...(name.test(toolChoice) && { 'x-relay-tool-choice': toolChoice }),
  };
}
