/** Delivers notices: from the table stream of `runtime` when one is put, and on a schedule those that failed. */
import {
  streamOrSchedule,
  tableStreamHandler,
} from '../shared/adapters/table-streams/table-stream-handler.ts';
import { noticeIdOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { notifyJob } from './compose/notify-job.ts';

const job = notifyJob();

export const handler = streamOrSchedule(tableStreamHandler(noticeIdOf, job), job.retry);
