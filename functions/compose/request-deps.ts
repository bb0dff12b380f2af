/** The dependencies of functions that answer requests but call no models. */
import { createConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import {
  systemClock as clock,
  systemRandom as random,
  timeSortedIds,
} from '../../shared/adapters/system/node-ports.ts';
import { createJsonLog } from '../../shared/adapters/telemetry/log.ts';
import type { Handle, HostedHandle } from '../../shared/relay/http/http.ts';
import { connectTables } from './late-adapters.ts';

export function composeRequestDeps(environment = readEnvironment()) {
  const { local, originSecrets, stack, version } = environment;
  const log = createJsonLog(version);
  const client = connectTables(environment);
  const hostHandle = (handle: Handle): HostedHandle => ({
    handle,
    clock,
    ids: timeSortedIds(clock),
    log,
    originSecrets,
    local,
  });
  const config = createConfigSource({ client, clock, random, log, stack });
  return { environment, hosted: hostHandle, deps: { stack, client, clock, random, log, config } };
}
