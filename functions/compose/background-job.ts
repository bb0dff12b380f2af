/** Connects runs of background responses to this stack's adapters: those of calls that a client waits for. */
import type { HostedRuns } from '../../shared/adapters/lambda/event-handler.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../../shared/adapters/system/system-clock.ts';
import { timeSortedIds } from '../../shared/adapters/system/time-sorted-ids.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { backgroundRuns } from '../../shared/relay/running.ts';
import { answeringPorts } from './answering-handle.ts';

export function backgroundJob(endpoint: Endpoint): HostedRuns {
  const ports = answeringPorts(readEnvironment(), clock);
  return { run: backgroundRuns(ports, endpoint), clock, ids: timeSortedIds(clock), log: ports.log };
}
