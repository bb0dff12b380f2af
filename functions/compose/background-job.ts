/** Connects runs of background responses to this stack's adapters: those of calls that a client waits for. */
import type { HostedRuns } from '../../shared/adapters/lambda/event-handler.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../../shared/adapters/system/system-clock.ts';
import { timeSortedIds } from '../../shared/adapters/system/time-sorted-ids.ts';
import { tracedRuns } from '../../shared/adapters/tracing/traced-runs.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import type { ChatPorts } from '../../shared/relay/call/chat-ports.ts';
import { backgroundRuns } from '../../shared/relay/running.ts';
import { answeringPorts } from './answering-handle.ts';

export function backgroundJob(endpoint: Endpoint): HostedRuns {
  const environment = readEnvironment();
  const { stack, tracing: settings, version } = environment;
  const ports = answeringPorts(environment, clock);
  const runsOf = (given: ChatPorts) => backgroundRuns(given, endpoint);
  const run = settings ? tracedRuns({ settings, stack, version, ports, runsOf }) : runsOf(ports);
  return { run, clock, ids: timeSortedIds(clock), log: ports.log };
}
