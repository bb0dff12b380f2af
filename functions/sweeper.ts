/** Runs every minute: closes reservations whose invocation can no longer be running. */
import { sweeperJob } from './compose/sweeper-job.ts';

export const handler = sweeperJob();
