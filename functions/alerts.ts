/**
 * Decides what operators and customers are reported about accounts: from the table stream of `quotas`, and on a schedule
 * for dates that come near and changes that the stream missed.
 */
import {
  streamOrSchedule,
  tableStreamHandler,
} from '../shared/adapters/table-streams/table-stream-handler.ts';
import { quotaChangeOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { alertsJob } from './compose/alerts-job.ts';

const job = alertsJob();

export const handler = streamOrSchedule(tableStreamHandler(quotaChangeOf, job), job.pass);
