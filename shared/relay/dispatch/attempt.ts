/**
 * One call of one candidate as a canonical stream, and what was learned on the way. The report does not depend on how
 * the stream ended: a cut answer is still billed by the usage that it carried.
 */
import { BodyToUpstreamEvents } from '../../upstreams/body-events.ts';
import { UpstreamToChat } from '../../upstreams/dialects/chat/events.ts';
import { run } from '../../stream/machine.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { channelRequest } from './channel-request.ts';
import { channelTypes } from '../../upstreams/channel-type.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { hasContent } from '../../wire/chunk-content.ts';
import { SecretMissing } from '../ports/secret-store.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import type { AttemptReport } from '../call/dispatch-report.ts';
import type { Candidate } from './candidate-order.ts';
import { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { readUpstreamRefusal } from '../../upstreams/dialects/chat/failure.ts';
import { Watchdog } from './watchdog.ts';

const megabyte = 1024 * 1024;
const bodyLimits = {
  answerBytesMax: 64 * megabyte,
  documentBytesMax: 16 * megabyte,
  lineLengthMax: 8 * megabyte,
};
/** How long a finished answer waits for the upstream's usage. */
const graceMs = 2_000;

export class Attempt {
  /**
   * Can be read once. Throws a Refusal when the caller's request is at fault and an UpstreamFailure for everything
   * else; nothing keeps running after it ended, threw or was returned early.
   */
  readonly chunks: AsyncGenerator<ChatChunk[], void, undefined>;
  readonly #ports: ChatPorts;
  readonly #candidate: Candidate;
  readonly #call: ChatCall;
  readonly #reader: UpstreamToChat;
  #upstreamStatus: number | undefined;

  constructor(ports: ChatPorts, candidate: Candidate, call: ChatCall) {
    this.#ports = ports;
    this.#candidate = candidate;
    this.#call = call;
    this.#reader = new UpstreamToChat(call.identity);
    this.chunks = this.#read();
  }

  /** Valid at any moment: while the stream runs and after any of its endings. */
  report(): AttemptReport {
    const { usage, usageClamped } = this.#reader;
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
      const events = run(this.#reply(watchdog), new BodyToUpstreamEvents(bodyLimits));
      for await (const batch of run(events, this.#reader)) {
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

  /** The reads of a 2xx answer, up to `[DONE]`. */
  async *#reply(watchdog: Watchdog): AsyncGenerator<Uint8Array[], void, undefined> {
    const { channel } = this.#candidate;
    const { model, request, outputTokensLimit } = this.#call;
    const secret = await this.#readSecret();
    const upstreamModel = new Map(Object.entries(channel.mapper)).get(model.base) ?? model.base;
    const sent = channelRequest(channel, { request, model: upstreamModel, secret, outputTokensLimit });
    const answer = await this.#ports.transport.send(sent, watchdog.signal);
    this.#upstreamStatus = answer.status;
    if (answer.status < 200 || answer.status > 299)
      throw await readUpstreamRefusal(answer, {
        withheld: [secret ?? '', new URL(sent.url).hostname],
        type: channelTypes[channel.type],
      });
    for await (const bytes of answer.body) {
      watchdog.handedOn();
      yield [bytes];
      watchdog.read();
      if (this.#reader.done) return;
      if (this.#reader.finishedChoices >= (request.n ?? 1)) watchdog.finished();
    }
  }

  async #readSecret(): Promise<string | undefined> {
    const { secret } = this.#candidate;
    if (secret === undefined) return undefined;
    try {
      return await this.#ports.secrets.read(secret);
    } catch (error) {
      throw new UpstreamFailure(error instanceof SecretMissing ? 'secret' : 'secret_store');
    }
  }
}
