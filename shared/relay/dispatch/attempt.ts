/**
 * Calls one candidate and returns its answer as a canonical stream with a report. The report is valid however
 * the stream ended, because an interrupted answer is billed by the usage it reported.
 */
import { BodyEvents } from '../../upstreams/body-events.ts';
import type { AnswerReader, Dialect } from '../../upstreams/dialect.ts';
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import { run } from '../../stream/machine.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { channelRequest } from '../../upstreams/types/channel-request.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { refusalOfCaller } from './failure-refusals.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { hasContent } from '../../wire/chunk-content.ts';
import { SecretUnusable } from '../ports/stores/secret-store.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import type { AttemptReport } from '../call/dispatch-report.ts';
import type { Candidate } from './candidate-order.ts';
import { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { readFailure } from '../../upstreams/read-failure.ts';
import { Watchdog } from './watchdog.ts';

const megabyte = 1024 * 1024;
const bodyLimits = {
  answerBytesMax: 64 * megabyte,
  documentBytesMax: 16 * megabyte,
  lineLengthMax: 8 * megabyte,
};
/** How long a finished answer waits for the upstream to report its usage. */
const graceMs = 2_000;

export class Attempt {
  /**
   * Can be read once. Throws a Refusal when the caller's request is at fault, otherwise an UpstreamFailure.
   * Nothing keeps running after it ends, throws or is returned early.
   */
  readonly chunks: AsyncGenerator<ChatChunk[], void, undefined>;
  readonly #ports: ChatPorts;
  readonly #candidate: Candidate;
  readonly #call: ChatCall;
  #reader: AnswerReader | undefined;
  #upstreamStatus: number | undefined;

  constructor(ports: ChatPorts, candidate: Candidate, call: ChatCall) {
    this.#ports = ports;
    this.#candidate = candidate;
    this.#call = call;
    this.chunks = this.#read();
  }

  /** Valid at any time: during the stream and after every kind of end. */
  report(): AttemptReport {
    const { usage, usageClamped = false } = this.#reader ?? {};
    return { upstreamStatus: this.#upstreamStatus, usage, usageClamped };
  }

  async *#read(): AsyncGenerator<ChatChunk[], void, undefined> {
    const { channel } = this.#candidate;
    const limits = {
      firstContentMs: channel.first_content_seconds * 1000,
      idleMs: channel.idle_seconds * 1000,
      totalMs: channel.total_seconds * 1000,
      graceMs,
    };
    const watchdog = new Watchdog(this.#ports.clock, limits, this.#call.signal);
    try {
      const dialect = await loadDialect();
      const reader = new dialect.Reader(this.#call.identity);
      this.#reader = reader;
      const events = run(this.#reply(dialect, reader, watchdog), new BodyEvents(bodyLimits));
      for await (const batch of run(events, reader)) {
        if (batch.some(hasContent)) watchdog.content();
        yield batch;
      }
    } catch (error) {
      const timeUp = watchdog.reason === 'deadline' ? 'deadline' : 'timeout';
      throw watchdog.signal.aborted ? new UpstreamFailure(timeUp) : (UpstreamFailure.from(error) ?? error);
    } finally {
      watchdog.stop();
    }
  }

  /** Reads a 2xx reply up to its end mark. */
  async *#reply(
    dialect: Dialect,
    reader: AnswerReader,
    watchdog: Watchdog,
  ): AsyncGenerator<Uint8Array[], void, undefined> {
    const { channel } = this.#candidate;
    const { model, request, outputTokensLimit } = this.#call;
    const secret = await this.#readSecret();
    const call = { dialect, request, model: model.base, secret, outputTokensLimit };
    const sent = channelRequest(channel, call);
    const answer = await this.#ports.transport.send(sent, watchdog.signal);
    this.#upstreamStatus = answer.status;
    if (answer.status < 200 || answer.status > 299) {
      const type = channelTypes[channel.type];
      const withheld = [secret ?? '', new URL(sent.url).hostname];
      const failure = await readFailure(answer, { dialect, type, withheld });
      throw failure.kind === 'caller' ? refusalOfCaller(failure) : failure;
    }
    for await (const bytes of answer.body) {
      watchdog.handedOn();
      yield [bytes];
      watchdog.read();
      if (reader.done) return;
      if (reader.finishedChoices >= (request.n ?? 1)) watchdog.finished();
    }
  }

  async #readSecret(): Promise<string | undefined> {
    const { secret } = this.#candidate;
    if (secret === undefined) return undefined;
    try {
      return await this.#ports.secrets.read(secret);
    } catch (error) {
      throw new UpstreamFailure(error instanceof SecretUnusable ? 'secret' : 'secret_store');
    }
  }
}
