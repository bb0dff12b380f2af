/** The Lambda handler of a function that other functions send events to. The event has ids alone: what they name is stored. */
import type { Context } from 'aws-lambda';
import type { Ids } from '../../relay/ports/ids.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import type { RunEvent } from '../../relay/running.ts';
import { trapRejections } from './trap-rejections.ts';

export interface HostedRuns {
  /** @param traceparent the call that the run was accepted by. Undefined: it was not traced */
  run: (event: RunEvent, traceparent: string | undefined) => Promise<void>;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/** Rejects for what is no such event, which then goes where failed events go. */
export function eventHandler({ run, clock, ids, log }: HostedRuns) {
  trapRejections(log);
  return async (event: unknown, context: Pick<Context, 'getRemainingTimeInMillis'>): Promise<void> => {
    const { account, id, traceparent } = (event ?? {}) as Record<string, unknown>;
    if (typeof account !== 'string' || typeof id !== 'string')
      throw new Error('The event names no stored response.');
    const hostDeadlineMs = clock.now() + context.getRemainingTimeInMillis();
    // Lambda gives both deliveries of one event one request id.
    const parent = typeof traceparent === 'string' ? traceparent : undefined;
    await run({ account, id, run: ids.next(), hostDeadlineMs }, parent);
  };
}
