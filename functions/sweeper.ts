/** Every minute: closes the reservations of invocations that can no longer live. */
import { sweeperJob } from './compose/sweeper-job.ts';

export const handler = sweeperJob();
