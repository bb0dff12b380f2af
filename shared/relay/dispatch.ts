import { opened } from '../stream/opened.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import { attempt } from './attempt.ts';
import type { ChatCall } from './chat-call.ts';
import { hasContent } from './meter.ts';
import type { ChatPorts } from './ports.ts';
import { refusalOfFailure, UpstreamFailure } from './upstream-failure.ts';

/**
 * The answer to a call, from the channel that serves it: the first by priority. Its first batches come together,
 * once the answer has content or is whole, so that until then another channel could still take over.
 */
export async function* dispatch(
  ports: ChatPorts,
  call: ChatCall,
): AsyncGenerator<ChatChunk[], void, undefined> {
  const [channel] = call.route;
  call.record.channel = channel.id;
  try {
    const answer = await opened(attempt(ports, channel, call), hasContent);
    call.record.first_content_ms = ports.clock.now() - call.startedMs;
    yield* answer;
  } catch (error) {
    throw error instanceof UpstreamFailure ? refusalOfFailure(error) : error;
  }
}
