import { BodyToUpstreamEvents } from '../../upstreams/body-events.ts';
import { UpstreamToChat } from '../../upstreams/dialects/chat/events.ts';
import { run } from '../../stream/machine.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { channelRequest } from './channel-request.ts';
import { channelTypes } from '../../upstreams/channel-type.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { hasContent } from '../../wire/chunk-content.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import { SecretUnusable } from '../ports/secret-store.ts';
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

/**
 * One call of one candidate as a canonical stream. Throws a Refusal when the caller's request is at fault and an
 * UpstreamFailure for everything else; nothing keeps running after it ended, failed or was returned early.
 */
export async function* attempt(
  ports: ChatPorts,
  { channel, secret }: Candidate,
  call: ChatCall,
): AsyncGenerator<ChatChunk[], void, undefined> {
  const limits = {
    firstContentMs: channel.first_content_seconds * 1000,
    idleMs: channel.idle_seconds * 1000,
    totalMs: channel.total_seconds * 1000,
    graceMs,
  };
  const watchdog = new Watchdog(ports.clock, limits, call.signal);
  const reader = new UpstreamToChat(call.identity);
  try {
    const pieces = reply(ports, { channel, secret }, call, watchdog, reader);
    for await (const batch of run(run(pieces, new BodyToUpstreamEvents(bodyLimits)), reader)) {
      if (batch.some(hasContent)) watchdog.content();
      yield batch;
    }
  } catch (error) {
    const timeUp = watchdog.reason === 'deadline' ? 'deadline' : 'timeout';
    throw watchdog.signal.aborted ? new UpstreamFailure(timeUp) : (UpstreamFailure.from(error) ?? error);
  } finally {
    call.told.usage = reader.usage;
    call.record.usage_clamped = reader.usageClamped || undefined;
    watchdog.stop();
  }
}

/** The reads of a 2xx answer, up to `[DONE]`. */
async function* reply(
  ports: ChatPorts,
  candidate: Pick<Candidate, 'channel' | 'secret'>,
  call: ChatCall,
  watchdog: Watchdog,
  reader: UpstreamToChat,
): AsyncGenerator<Uint8Array[], void, undefined> {
  const { channel } = candidate;
  const secret = await readSecret(ports, candidate.secret);
  const model = new Map(Object.entries(channel.mapper)).get(call.model.base) ?? call.model.base;
  const { request, outputTokensLimit } = call;
  const sent = channelRequest(channel, { request, model, secret, outputTokensLimit });
  const answer = await ports.transport.send(sent, watchdog.signal);
  call.record.upstream_status = answer.status;
  if (answer.status < 200 || answer.status > 299)
    throw await readUpstreamRefusal(answer, {
      withheld: [secret ?? '', new URL(sent.url).hostname],
      type: channelTypes[channel.type],
    });
  for await (const bytes of answer.body) {
    watchdog.handedOn();
    yield [bytes];
    watchdog.read();
    if (reader.done) return;
    if (reader.finishedChoices >= (call.request.n ?? 1)) watchdog.finished();
  }
}

async function readSecret(ports: ChatPorts, reference: string | undefined): Promise<string | undefined> {
  if (reference === undefined) return undefined;
  try {
    return await ports.secrets.read(reference);
  } catch (error) {
    throw new UpstreamFailure(error instanceof SecretUnusable ? 'secret' : 'secret_store');
  }
}
