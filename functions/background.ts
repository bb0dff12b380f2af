/** Answers background responses, one per event from the function `responses`. Each minute it polls vendors whose answers take hours. */
import { createEventHandler, createRunJob } from '../shared/adapters/entry/event-handler.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { createBackgroundRuns } from '../shared/relay/background-run.ts';
import type { ChatPorts } from '../shared/relay/ports/chat-ports.ts';
import { composeAnsweringPorts } from './compose/answering.ts';

const environment = readEnvironment();
const { stack, tracing: settings, version } = environment;
const ports = composeAnsweringPorts(environment, clock);
const runsOf = (given: ChatPorts) => createBackgroundRuns(given, responsesEndpoint);

/** Few stacks trace their runs, so the tracer (6 KB) is loaded late. */
async function traceLate(traced: NonNullable<typeof settings>) {
  const { traceRuns } = await import('../shared/adapters/tracing/call-tracer.ts');
  return traceRuns({ settings: traced, stack, version, ports, runsOf });
}
const runs = settings ? traceLate(settings) : Promise.resolve(runsOf(ports));

export const handler = createEventHandler(ports.log, {
  run: createRunJob({ run: async (...event) => (await runs)(...event), clock, ids: timeSortedIds(clock) }),
  schedule: async () => {
    const { createWindowPolls } = await import('../shared/relay/window-polls.ts');
    await createWindowPolls(ports, responsesEndpoint)();
  },
});
