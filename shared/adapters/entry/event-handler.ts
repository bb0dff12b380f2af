/**
 * Builds the Lambda handler of functions that events invoke. It rejects unexpected events by name and logs one line for a
 * failed job. It must never rethrow the job's error: Lambda would log it with the store's words and items.
 */
import middy from '@middy/core';
import type { Context, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import type { RunEvent } from '../../relay/background-run.ts';
import type { Clock, Ids } from '../../relay/ports/host.ts';
import type { RunToStart } from '../../relay/ports/stored.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { asRecord, isRecord, type JsonRecord } from '../../wire/json.ts';
import { describeFault } from '../telemetry/log.ts';
import { trapRejections } from './lambda-handlers.ts';

export interface EventJobs {
  records?: (event: DynamoDBStreamEvent, context: Context) => Promise<unknown>;
  schedule?: (event: ScheduledEvent) => Promise<unknown>;
  /** The event holds only ids: the response itself is stored. */
  run?: (event: RunToStart, context: Context) => Promise<unknown>;
}

interface RunDeps {
  /** @param traceparent of the call that the run was accepted by, if it was traced */
  run: (event: RunEvent, traceparent: string | undefined) => Promise<void>;
  clock: Pick<Clock, 'now'>;
  ids: Ids;
}

/** Each delivery gets its own run id: Lambda repeats one event under the same request id. */
export const createRunJob =
  ({ run, clock, ids }: RunDeps): NonNullable<EventJobs['run']> =>
  ({ account, id, traceparent }, context) => {
    const hostDeadlineMs = clock.now() + context.getRemainingTimeInMillis();
    return run({ account, id, run: ids.next(), hostDeadlineMs }, traceparent);
  };

/** Recognises the forms in which AWS sends events. */
const forms: Record<keyof EventJobs, (event: JsonRecord) => boolean> = {
  records: ({ Records: all }) =>
    Array.isArray(all) && all.every((record) => isRecord(record) && isRecord(record['dynamodb'])),
  schedule: (event) => event['detail-type'] === 'Scheduled Event',
  run: ({ account, id, traceparent = '' }) =>
    [account, id, traceparent].every((each) => typeof each === 'string'),
};

const identifyEvent = (event: unknown): keyof EventJobs | undefined =>
  (Object.keys(forms) as (keyof EventJobs)[]).find((form) => forms[form](asRecord(event)));

class UnknownEvent extends Error {
  override readonly name = 'UnknownEvent';
}

class JobFailed extends Error {
  override readonly name = 'JobFailed';
}

/** Rejects when a job failed. The trigger decides about retries. */
export function createEventHandler(log: Log, jobs: EventJobs) {
  trapRejections(log);
  return middy<unknown, unknown>({ timeoutEarlyInMillis: 0 })
    .before(({ event }) => {
      const form = identifyEvent(event);
      if (form === undefined || !jobs[form])
        throw new UnknownEvent(`This function takes only: ${Object.keys(jobs).join(', ')}.`);
    })
    .onError((request) => {
      const { error, event, context } = request;
      const form = identifyEvent(event) ?? 'unknown';
      log.fault(context.awsRequestId, error, { event: form, outcome: 'failed' });
      const reason = error instanceof UnknownEvent ? error.message : `${describeFault(error).error}.`;
      request.error = new JobFailed(`${form}: ${reason} The line "fault" of this invocation has more.`);
    })
    .handler((event, context) => jobs[identifyEvent(event) as keyof EventJobs]?.(event as never, context));
}
