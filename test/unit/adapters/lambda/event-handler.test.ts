import { expect, it } from 'vitest';
import { eventHandler } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { timeSortedIds } from '../../../../shared/adapters/system/node-ports.ts';
import type { RunEvent } from '../../../../shared/relay/background-run.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { steeredClock } from '../steered-clock.ts';

const event = { account: 'acme', id: 'resp-1' };

function handlerOf(): { handle: ReturnType<typeof eventHandler>; runs: RunEvent[] } {
  const clock = steeredClock();
  const runs: RunEvent[] = [];
  const run = async (one: RunEvent): Promise<void> => void runs.push(one);
  return { runs, handle: eventHandler({ run, clock, ids: timeSortedIds(clock), log: recordedLog() }) };
}

it('names each delivery of one event anew, although Lambda gives them one request id', async () => {
  const context = { awsRequestId: 'one', getRemainingTimeInMillis: () => 900_000 };
  const [first, other] = [handlerOf(), handlerOf()];
  for (const handle of [first.handle, first.handle, other.handle]) await handle(event, context);
  const runs = [...first.runs, ...other.runs];
  expect(runs).toMatchObject([event, event, event]);
  expect(new Set(runs.map(({ run }) => run)).size).toBe(3);
});

it('rejects what names no response', async () => {
  const { handle, runs } = handlerOf();
  const context = { getRemainingTimeInMillis: () => 900_000 };
  for (const other of [undefined, {}, { account: 'acme' }, { id: 'resp-1' }, 'resp-1'])
    await expect(handle(other, context)).rejects.toThrow('names no stored response');
  expect(runs).toEqual([]);
});
