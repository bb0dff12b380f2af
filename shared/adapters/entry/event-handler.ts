/**
 * The Lambda handler of every function that events invoke. Its chain refuses an event of another form by name, before the
 * job stumbles over it, and gives a job that failed one line in the log, with what invoked it. Must never hand Lambda the
 * error itself: Lambda logs it whole, with the store's words and the items in it.
 */
import middy from '@middy/core';
import type { Context, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import type { RunEvent } from '../../relay/background-run.ts';
import type { Clock, Ids } from '../../relay/ports/host.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { asRecord, isRecord, type JsonRecord } from '../../wire/json.ts';
import { describeFault } from '../telemetry/log.ts';
import { trapRejections } from './lambda-handlers.ts';

/** What another function sent: ids alone, what they name is stored. */
export interface SentRun {
  account: string;
  id: string;
  traceparent?: string;
}

/** The events that functions are invoked by, and what does the work of each. */
export interface EventJobs {
  records?: (event: DynamoDBStreamEvent, context: Context) => Promise<unknown>;
  schedule?: (event: ScheduledEvent) => Promise<unknown>;
  run?: (event: SentRun, context: Context) => Promise<unknown>;
}

interface RunDeps {
  /** @param traceparent the call that the run was accepted by. Undefined: it was not traced */
  run: (event: RunEvent, traceparent: string | undefined) => Promise<void>;
  clock: Pick<Clock, 'now'>;
  ids: Ids;
}

/** Each delivery is a run of its own: Lambda gives both deliveries of one event one request id. */
export const createRunJob =
  ({ run, clock, ids }: RunDeps): NonNullable<EventJobs['run']> =>
  ({ account, id, traceparent }, context) => {
    const hostDeadlineMs = clock.now() + context.getRemainingTimeInMillis();
    return run({ account, id, run: ids.next(), hostDeadlineMs }, traceparent);
  };

/** How AWS forms each. */
const forms: Record<keyof EventJobs, (event: JsonRecord) => boolean> = {
  records: ({ Records: all }) =>
    Array.isArray(all) && all.every((record) => isRecord(record) && isRecord(record['dynamodb'])),
  schedule: (event) => event['detail-type'] === 'Scheduled Event',
  run: ({ account, id, traceparent = '' }) => [account, id, traceparent].every(isText),
};

const isText = (value: unknown): boolean => typeof value === 'string';

const formOf = (event: unknown): keyof EventJobs | undefined =>
  (Object.keys(forms) as (keyof EventJobs)[]).find((form) => forms[form](asRecord(event)));

class UnknownEvent extends Error {
  override readonly name = 'UnknownEvent';
}

/** What Lambda is told of a failure. */
class JobFailed extends Error {
  override readonly name = 'JobFailed';
}

/** Rejects where a job failed: what Lambda then does with the event is its trigger's affair. */
export function createEventHandler(log: Log, jobs: EventJobs) {
  trapRejections(log);
  return middy<unknown, unknown>({ timeoutEarlyInMillis: 0 })
    .before(({ event }) => {
      const form = formOf(event);
      if (form === undefined || !jobs[form])
        throw new UnknownEvent(`This function takes only: ${Object.keys(jobs).join(', ')}.`);
    })
    .onError((request) => {
      const { error, event, context } = request;
      const form = formOf(event) ?? 'unknown';
      log.fault(context.awsRequestId, error, { event: form, outcome: 'failed' });
      const reason = error instanceof UnknownEvent ? error.message : `${describeFault(error).error}.`;
      request.error = new JobFailed(`${form}: ${reason} The line "fault" of this invocation has more.`);
    })
    .handler((event, context) => jobs[formOf(event) as keyof EventJobs]?.(event as never, context));
}
