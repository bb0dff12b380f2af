import { opened } from '../../stream/opened.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { attempt } from './attempt.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { HealthRecorder } from './health-recorder.ts';
import { hasContent } from '../../wire/chunk-content.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import { orderCandidates, type Candidate } from './candidate-order.ts';
import { withSearch } from '../search/search.ts';
import { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { coolingRefusal, refusalOfFailures } from './failure-refusals.ts';

const attemptsMax = 3;

/**
 * The answer to a call, after its web search if it wants one, from the first channel that gives one. Until an answer has content or is whole nothing of it was
 * passed on, so another channel can take over; after that a failure is the call's failure. Health is noted beside
 * the answer, in `call.afterwards`, and never delays it.
 */
export async function* dispatch(
  ports: ChatPorts,
  asked: ChatCall,
): AsyncGenerator<ChatChunk[], void, undefined> {
  const call = { ...asked, request: await withSearch(ports, asked) };
  asked.sent.request = call.request;
  const keeper = new HealthRecorder(ports.health, ports.clock);
  const { candidates, soonestMs } = orderCandidates(
    call.route,
    ports.health,
    ports.clock.now(),
    ports.random,
  );
  const failures: UpstreamFailure[] = [];
  for (const candidate of candidates) {
    if (failures.length >= attemptsMax || call.signal.aborted) break;
    if (candidate.probe && !(await claimed(ports, call, keeper, candidate))) continue;
    const attempted = begin(call, candidate);
    try {
      const answer = await opened(attempt(ports, candidate, call), hasContent);
      call.record.first_content_ms = ports.clock.now() - call.startedMs;
      // A probe that has content is enough for the others; for all else the whole answer counts.
      if (candidate.probe) beside(ports, call, keeper.succeeded(candidate));
      attempted.outcome = 'answered';
      yield* passOn(answer, (failure) => {
        attempted.outcome = failure.reason;
        beside(ports, call, keeper.failed(candidate, failure, false));
      });
      beside(ports, call, keeper.succeeded(candidate));
      return;
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) {
        // A refusal of the caller's request shows that the channel is alive.
        if (attempted.outcome === 'under_way') {
          attempted.outcome = 'refused';
          beside(ports, call, keeper.succeeded(candidate));
        }
        throw error;
      }
      attempted.outcome = error.reason;
      failures.push(error);
      beside(ports, call, noteFailure(ports, keeper, candidate, error));
    }
  }
  if (failures.length === 0 && call.signal.aborted) failures.push(new UpstreamFailure('deadline'));
  throw failures.length > 0 ? refusalOfFailures(failures) : coolingRefusal(soonestMs, ports.clock.now());
}

/** A probe that cannot be claimed now is left to others. */
async function claimed(
  ports: ChatPorts,
  call: ChatCall,
  keeper: HealthRecorder,
  candidate: Candidate,
): Promise<boolean> {
  try {
    return await keeper.claimProbe(candidate);
  } catch (error) {
    ports.log.fault(call.record.request_id, error);
    return false;
  }
}

/** From here on content was passed on: no other channel may take over, so the failure is told as the call's own. */
async function* passOn(
  answer: AsyncGenerator<ChatChunk[], void, undefined>,
  failed: (failure: UpstreamFailure) => void,
): AsyncGenerator<ChatChunk[], void, undefined> {
  try {
    yield* answer;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    failed(error);
    throw refusalOfFailures([error]);
  }
}

/** Health is worth a write, not an answer: what goes wrong with it is logged. */
function beside(ports: ChatPorts, call: ChatCall, work: Promise<void>): void {
  call.afterwards.push(work.catch((error: unknown) => ports.log.fault(call.record.request_id, error)));
}

function begin(call: ChatCall, { channel }: Candidate): { channel: string; outcome: string } {
  const attempted = { channel: channel.id, outcome: 'under_way' };
  call.record.channel = channel.id;
  call.record.attempts = [...(call.record.attempts ?? []), attempted];
  return attempted;
}

/** A refused secret may have been replaced in its store: then it is read anew, and nothing cools. */
async function noteFailure(
  ports: ChatPorts,
  keeper: HealthRecorder,
  candidate: Candidate,
  failure: UpstreamFailure,
): Promise<void> {
  const { secret } = candidate;
  const doubted = failure.status === 401 || failure.kind === 'secret';
  const changed = doubted && secret !== undefined && (await ports.secrets.refresh(secret));
  await keeper.failed(candidate, failure, changed);
}
