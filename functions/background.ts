/** Connects runs of background responses to this stack's adapters: those of calls that a client waits for. */
import { type HostedRuns, eventHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { tracedRuns } from '../shared/adapters/tracing/traced.ts';
import type { Endpoint } from '../shared/endpoints/endpoint.ts';
import type { ChatPorts } from '../shared/relay/ports/chat-ports.ts';
import { backgroundRuns } from '../shared/relay/background-run.ts';
import { answeringPorts } from './compose/answering.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';

function backgroundJob(endpoint: Endpoint): HostedRuns {
  const environment = readEnvironment();
  const { stack, tracing: settings, version } = environment;
  const ports = answeringPorts(environment, clock);
  const runsOf = (given: ChatPorts) => backgroundRuns(given, endpoint);
  const run = settings ? tracedRuns({ settings, stack, version, ports, runsOf }) : runsOf(ports);
  return { run, clock, ids: timeSortedIds(clock), log: ports.log };
}

// Answers background responses: the function `responses` sends it an event for each.

export const handler = eventHandler(backgroundJob(responsesEndpoint));
