/** Runs on a schedule, where the deployment has it: calls the relay as a customer would. */
import { canaryJob } from './compose/canary-job.ts';

export const handler = canaryJob();
