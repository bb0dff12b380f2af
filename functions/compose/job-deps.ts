/** The dependencies that all background jobs share. */
import { backgroundTimes } from '../../shared/adapters/dynamodb/table-client.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/node-ports.ts';
import { createJsonLog, createBackgroundMetrics } from '../../shared/adapters/telemetry/log.ts';
import { connectTables } from './late-adapters.ts';

export function composeJobDeps() {
  const environment = readEnvironment();
  const { stack, version } = environment;
  return {
    environment,
    stack,
    clock: systemClock,
    random: systemRandom,
    client: connectTables(environment, backgroundTimes),
    log: createJsonLog(version),
    metrics: createBackgroundMetrics(stack),
  };
}
