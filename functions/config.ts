/**
 * Publishes the configuration and marks rows with mistakes: on changes to the operators' tables, and on a
 * schedule.
 */
import { configStreamHandler } from '../shared/adapters/table-streams/config-stream-handler.ts';
import { configJob } from './compose/config-job.ts';

export const handler = configStreamHandler(configJob());
