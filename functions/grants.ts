/** Stream of `grants`, and a slow schedule for what the stream missed: applies every grant exactly once. */
import {
  streamOrSchedule,
  tableStreamHandler,
} from '../shared/adapters/table-streams/table-stream-handler.ts';
import { grantImageOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { grantsJob } from './compose/grants-job.ts';

const job = grantsJob();

export const handler = streamOrSchedule(tableStreamHandler(grantImageOf, job), () => job.applyMissed());
