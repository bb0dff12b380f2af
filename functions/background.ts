/** Answers background responses. The function `responses` sends one event for each. */
import { createEventHandler, createRunJob } from '../shared/adapters/entry/event-handler.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { traceRuns } from '../shared/adapters/tracing/call-tracer.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { createBackgroundRuns } from '../shared/relay/background-run.ts';
import type { ChatPorts } from '../shared/relay/ports/chat-ports.ts';
import { composeAnsweringPorts } from './compose/answering.ts';

const environment = readEnvironment();
const { stack, tracing: settings, version } = environment;
const ports = composeAnsweringPorts(environment, clock);
const runsOf = (given: ChatPorts) => createBackgroundRuns(given, responsesEndpoint);
const run = settings ? traceRuns({ settings, stack, version, ports, runsOf }) : runsOf(ports);

export const handler = createEventHandler(ports.log, {
  run: createRunJob({ run, clock, ids: timeSortedIds(clock) }),
});
