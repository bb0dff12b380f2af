/**
 * Applies every grant exactly once: from the table stream of `grants`, and on a slow schedule for rows that
 * the stream missed.
 */
import {
  streamOrSchedule,
  tableStreamHandler,
} from '../shared/adapters/table-streams/table-stream-handler.ts';
import { grantImageOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { grantsJob } from './compose/grants-job.ts';

const job = grantsJob();

export const handler = streamOrSchedule(tableStreamHandler(grantImageOf, job), job.applyMissed);
