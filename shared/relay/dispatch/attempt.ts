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
import type { ChatPorts } from '../call/chat-ports.ts';
import { SecretMissing } from '../ports/secret-store.ts';
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
  const dialect = await loadDialect();
  const watchdog = new Watchdog(ports.clock, limits, call.signal);
  const reader = dialect.reader(call.identity);
  try {
    const pieces = reply(ports, { channel, secret, dialect }, call, watchdog, reader);
    for await (const batch of run(run(pieces, new BodyEvents(bodyLimits)), reader)) {
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
  candidate: Pick<Candidate, 'channel' | 'secret'> & { dialect: Dialect },
  call: ChatCall,
  watchdog: Watchdog,
  reader: AnswerReader,
): AsyncGenerator<Uint8Array[], void, undefined> {
  const { channel, dialect } = candidate;
  const secret = await readSecret(ports, candidate.secret);
  const { request, outputTokensLimit } = call;
  const sent = channelRequest(channel, {
    dialect,
    request,
    model: call.model.base,
    secret,
    outputTokensLimit,
  });
  const answer = await ports.transport.send(sent, watchdog.signal);
  call.record.upstream_status = answer.status;
  if (answer.status < 200 || answer.status > 299) {
    const failure = await readFailure(answer, {
      dialect,
      type: channelTypes[channel.type],
      withheld: [secret ?? '', new URL(sent.url).hostname],
    });
    throw failure.kind === 'caller' ? refusalOfCaller(failure) : failure;
  }
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
    throw new UpstreamFailure(error instanceof SecretMissing ? 'secret' : 'secret_store');
  }
}
