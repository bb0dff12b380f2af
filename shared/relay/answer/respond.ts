import { run } from '../../stream/machine.ts';
import { costsNothing, type AnswerOutcome } from '../../billing/call-charge.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import type { Bill } from '../money/bill.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { Heartbeat } from './heartbeat.ts';
import type { RelayResponse } from '../http/http.ts';
import type { HeldKey } from '../call/idempotency-claim.ts';
import { Meter } from './meter.ts';
import { ResponseQueue } from './response-queue.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import { promptTokens } from '../../billing/prompt-tokens.ts';
import { asRefusal, refusalResponse, type Refusal } from '../http/refusal.ts';
import type { Renderer } from '../../endpoints/renderer.ts';

/** Text that may wait for a slow client (UTF-16 code units), and how long the client may take none of it. */
const waitingLengthMax = 1024 * 1024;
const stuckMs = 30_000;

/**
 * Answers with a canonical stream. The status is decided by what comes first: the renderer's first text or the
 * heartbeat (200), or a failure (its own status). The stream is read to its end even when the client is gone,
 * because its end says what it cost; `done` resolves after that.
 */
export async function respond(
  ports: ChatPorts,
  call: ChatCall,
  parts: AnswerParts,
  chunks: AsyncIterable<ChatChunk[]>,
): Promise<RelayResponse> {
  const { renderer, bill } = parts;
  const answer = new Answer(ports, call, parts);
  const done = answer.produce(chunks);
  await answer.responseQueue.opened;
  const requestId = call.identity.requestId;
  if (answer.refusal && !answer.responseQueue.committed) {
    const response = refusalResponse(answer.refusal, requestId);
    return { ...response, headers: { ...response.headers, ...attemptsHeader(call), ...bill.headers }, done };
  }
  return {
    status: 200,
    headers: {
      'content-type': renderer.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-request-id': requestId,
      ...attemptsHeader(call),
      ...bill.headers,
    },
    body: answer.responseQueue,
    done,
  };
}

/** How many channels were tried; absent when none was. */
function attemptsHeader({ record }: ChatCall): Record<string, string> {
  return record.attempts ? { 'x-relay-attempts': String(record.attempts.length) } : {};
}

/** What an answer is written with, and what its end closes. */
export interface AnswerParts {
  renderer: Renderer;
  bill: Bill;
  claim: HeldKey;
}

class Answer {
  readonly responseQueue = new ResponseQueue(waitingLengthMax);
  refusal: Refusal | undefined;
  readonly #ports: ChatPorts;
  readonly #call: ChatCall;
  readonly #renderer: Renderer;
  readonly #parts: AnswerParts;
  readonly #heartbeat: Heartbeat;

  constructor(ports: ChatPorts, call: ChatCall, parts: AnswerParts) {
    this.#ports = ports;
    this.#call = call;
    this.#renderer = parts.renderer;
    this.#parts = parts;
    this.#heartbeat = new Heartbeat(ports.clock);
  }

  /** Reads the whole stream into the response queue: the last byte first, then the bill, then the log. Never rejects. */
  async produce(chunks: AsyncIterable<ChatChunk[]>): Promise<void> {
    const { request, sent } = this.#call;
    const meter = new Meter(() => promptTokens(sent.request ?? request), this.#parts.bill.quota);
    const stop = new AbortController();
    void this.#heartbeat.run(this.responseQueue, this.#renderer, stop.signal);
    try {
      for await (const texts of run(run(chunks, meter), this.#renderer)) await this.#say(texts.join(''));
    } catch (error) {
      this.refusal = asRefusal(error);
      meter.told(this.#call.told.usage);
      if (this.refusal.body.error.code === 'internal')
        this.#ports.log.fault(this.#call.record.request_id, error);
      if (this.responseQueue.committed)
        this.responseQueue.push(this.#renderer.failed(this.refusal.body.error));
    }
    stop.abort();
    this.responseQueue.end();
    const end = this.#end();
    const outcome = this.#outcome(meter);
    await this.#parts.bill.close(outcome, end);
    await this.#parts.claim.finish(costsNothing(outcome));
    await Promise.all(this.#call.afterwards);
    this.#logEnd(meter, end);
  }

  #outcome(meter: Meter): AnswerOutcome {
    const { anyContent, estimated, usage } = meter;
    return { failed: this.refusal !== undefined, anyContent, usageKnown: !estimated, usage };
  }

  /** A client that takes nothing for too long counts as gone; the stream is then read on without it. */
  async #say(text: string): Promise<void> {
    this.responseQueue.push(text);
    this.#heartbeat.said();
    if (!this.responseQueue.full) return;
    const taken = new AbortController();
    const until = AbortSignal.any([taken.signal, this.#call.signal]);
    await Promise.race([this.responseQueue.taken(), this.#ports.clock.sleep(stuckMs, until)]);
    taken.abort();
    if (this.responseQueue.full) this.responseQueue.leave();
  }

  #logEnd(meter: Meter, end: string): void {
    const { record, startedMs } = this.#call;
    record.duration_ms = this.#ports.clock.now() - startedMs;
    record.status = this.refusal && !this.responseQueue.committed ? this.refusal.status : 200;
    record.end = end;
    if (this.refusal) {
      record.code = this.refusal.body.error.code;
      record.reason = this.refusal.reason;
    }
    if (meter.anyContent || !this.refusal) {
      record.prompt_tokens = meter.usage.prompt_tokens;
      record.completion_tokens = meter.usage.completion_tokens;
      record.usage_estimated = meter.estimated;
    }
    this.#ports.log.request(record);
  }

  #end(): string {
    if (this.refusal) return 'failed';
    return this.responseQueue.clientLeft ? 'client_gone' : 'completed';
  }
}
