import { expect, it } from 'vitest';
import { ServiceRefusal } from '../../../../shared/adapters/aws/aws-calls.ts';
import {
  createEventHandler,
  createRunJob,
  type EventJobs,
} from '../../../../shared/adapters/entry/event-handler.ts';
import { timeSortedIds } from '../../../../shared/adapters/system/node-ports.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import type { RunEvent } from '../../../../shared/relay/background-run.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { steeredClock } from '../steered-clock.ts';
import { invocation } from './url-event.ts';

const run = { account: 'acme', id: 'resp-1' };
const schedule = { 'detail-type': 'Scheduled Event', source: 'aws.events' };
const records = { Records: [{ eventSource: 'aws:dynamodb', dynamodb: { SequenceNumber: '1' } }] };

function host(jobs: EventJobs) {
  const log = recordedLog();
  const handle = createEventHandler(log, jobs);
  return { log, handle: (event: unknown) => handle(event, invocation()) };
}

it('gives each delivery of one event a new id, although Lambda reuses its request id', async () => {
  const runs: RunEvent[] = [];
  const clock = steeredClock();
  const one = () =>
    host({
      run: createRunJob({ run: async (each) => void runs.push(each), clock, ids: timeSortedIds(clock) }),
    });
  const [first, other] = [one(), one()];
  for (const { handle } of [first, first, other]) await handle(run);
  expect(runs).toMatchObject([run, run, run]);
  expect(new Set(runs.map((each) => each.run)).size).toBe(3);
});

it('passes each job the events of its own form', async () => {
  const given: string[] = [];
  const { handle } = host({
    records: async () => ({ batchItemFailures: [{ itemIdentifier: String(given.push('records')) }] }),
    schedule: async () => void given.push('schedule'),
    run: async () => void given.push('run'),
  });
  expect(await handle(records)).toEqual({ batchItemFailures: [{ itemIdentifier: '1' }] });
  for (const event of [schedule, run]) await handle(event);
  expect(given).toEqual(['records', 'schedule', 'run']);
});

it.each<[string, unknown]>([
  ['nothing', undefined],
  ['a text', 'resp-1'],
  ['an object without members', {}],
  ['a run without its id', { account: 'acme' }],
  ['the records of a queue', { Records: [{ eventSource: 'aws:sqs', body: '{}' }] }],
  ['an event for another function', schedule],
])('rejects %s before a job sees it, and names the accepted events', async (_what, event) => {
  const seen: unknown[] = [];
  const { log, handle } = host({ run: async (each) => void seen.push(each), records: async (each) => each });
  await expect(handle(event)).rejects.toThrow(/This function takes only: run, records/);
  expect(seen).toEqual([]);
  expect(log.faults).toMatchObject([{ requestId: 'aws-id', error: { name: 'UnknownEvent' } }]);
});

it("logs a failed job once, and hides the store's message from Lambda", async () => {
  const refusal = new ServiceRefusal(
    { status: 400, headers: {} },
    { __type: 'ConditionalCheckFailedException', message: 'secret words', Item: { balance: { N: '7' } } },
  );
  const cause = new StoreUnavailable('secret words', { cause: refusal });
  const { log, handle } = host({ schedule: () => Promise.reject(cause) });
  const told = (await handle(schedule).catch((error: unknown) => error)) as Error;
  expect(told).toMatchObject({ name: 'JobFailed', message: expect.stringContaining('StoreUnavailable') });
  expect(Object.getOwnPropertyNames(told).toSorted()).toEqual(['message', 'name', 'stack']);
  expect(String(told.stack)).not.toContain('secret words');
  expect(log.faults).toEqual([
    { requestId: 'aws-id', error: cause, fields: { event: 'schedule', outcome: 'failed' } },
  ]);
});
