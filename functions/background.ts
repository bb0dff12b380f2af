/**
 * Answers background responses, by the adapters of those that a client waits for: the function `responses` sends it an event
 * for each.
 */
import { eventHandler, namedRun } from '../shared/adapters/entry/event-handler.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { tracedRuns } from '../shared/adapters/tracing/traced.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { backgroundRuns } from '../shared/relay/background-run.ts';
import type { ChatPorts } from '../shared/relay/ports/chat-ports.ts';
import { answeringPorts } from './compose/answering.ts';

const environment = readEnvironment();
const { stack, tracing: settings, version } = environment;
const ports = answeringPorts(environment, clock);
const runsOf = (given: ChatPorts) => backgroundRuns(given, responsesEndpoint);
const run = settings ? tracedRuns({ settings, stack, version, ports, runsOf }) : runsOf(ports);

export const handler = eventHandler(ports.log, {
  run: namedRun({ run, clock, ids: timeSortedIds(clock) }),
});
