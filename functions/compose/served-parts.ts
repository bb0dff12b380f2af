/** What every function is composed of that answers requests, but calls of models. */
import { dynamoConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import {
  systemClock as clock,
  systemRandom as random,
  timeSortedIds,
} from '../../shared/adapters/system/node-ports.ts';
import { jsonLog } from '../../shared/adapters/telemetry/log.ts';
import type { Handle, HostedHandle } from '../../shared/relay/http/http.ts';
import { tablesOf } from './late-adapters.ts';

export function servedParts(environment = readEnvironment()) {
  const { local, originSecrets, stack, version } = environment;
  const log = jsonLog(version);
  const client = tablesOf(environment);
  const hosted = (handle: Handle): HostedHandle => ({
    handle,
    clock,
    ids: timeSortedIds(clock),
    log,
    originSecrets,
    local,
  });
  const config = dynamoConfigSource({ client, clock, random, log, stack });
  return { environment, hosted, parts: { stack, client, clock, random, log, config } };
}
