/**
 * Runs of background responses, each with a trace that is a part of the one that its acceptance has. It leaves at the end of
 * the run, within the invocation. Must never delay or fail a run.
 */
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { RunEvent } from '../../relay/running.ts';
import { requestIdOf } from '../../relay/stored/background/handed-call.ts';
import { readTraceParent } from './trace-context.ts';
import { nameOf } from './traced-ports.ts';
import { Tracer, type TracerParts } from './tracer.ts';

export interface TracedRunsParts extends TracerParts {
  /** Makes the runs that are traced, of ports that note their calls. */
  runsOf: (ports: ChatPorts) => (event: RunEvent) => Promise<void>;
}

export function tracedRuns({ runsOf, ...parts }: TracedRunsParts) {
  const tracer = new Tracer(parts);
  const run = runsOf(tracer.ports);
  return async (event: RunEvent, traceparent: string | undefined): Promise<void> => {
    const requestId = requestIdOf(event.id);
    const parent = readTraceParent(traceparent);
    // Whether the call is traced was decided when it was accepted.
    const sampled = parent?.sampled ?? parts.ports.random.next() < parts.settings.ratio;
    const trace = tracer.begin(requestId, { ...parent, sampled });
    trace.root.name = 'background run';
    const attributes = { 'relay.request_id': requestId };
    try {
      await tracer.within(trace, () => run(event));
    } catch (error) {
      await tracer.over(requestId, attributes, nameOf(error));
      throw error;
    }
    await tracer.over(requestId, attributes);
  };
}
