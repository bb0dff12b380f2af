/** Streams of the tables that operators edit, and a schedule: publishes the configuration, marks rows with mistakes. */
import { configStreamHandler } from '../shared/adapters/table-streams/config-stream-handler.ts';
import { configJob } from './compose/config-job.ts';

export const handler = configStreamHandler(configJob());
