/** POST /v1/chat/completions, streamed through a Function URL. */
import { systemClock } from '../shared/adapters/clock.ts';
import { scannedConfig } from '../shared/adapters/config-source.ts';
import { documentClient } from '../shared/adapters/dynamo.ts';
import { streamingHandler } from '../shared/adapters/edge/streaming-handler.ts';
import { trapRejections } from '../shared/adapters/edge/trap-rejections.ts';
import { readEnvironment } from '../shared/adapters/environment.ts';
import { timeSortedIds } from '../shared/adapters/ids.ts';
import { dynamoKeyStore } from '../shared/adapters/key-store.ts';
import { powertoolsLog } from '../shared/adapters/log.ts';
import { dynamoQuotaStore } from '../shared/adapters/quota-store.ts';
import { systemRandom } from '../shared/adapters/random.ts';
import { secretStore } from '../shared/adapters/secret-store.ts';
import { upstreamTransport } from '../shared/adapters/upstream-transport.ts';
import { withCors } from '../shared/relay/cors.ts';
import { chatRelay } from '../shared/relay/pipeline.ts';

const environment = readEnvironment();
const clock = systemClock;
const log = powertoolsLog(environment.version);
trapRejections(log);

const { stack, local } = environment;
const client = documentClient(environment.aws);

const config = scannedConfig({ client, clock, log, stack, local });
const relay = chatRelay({
  clock,
  log,
  config,
  keys: dynamoKeyStore({ client, clock, stack }),
  secrets: secretStore({ environment, clock }),
  transport: upstreamTransport(),
  quotas: dynamoQuotaStore(client, stack),
  random: systemRandom,
});
const handle = withCors(relay, config);

export const handler = streamingHandler({ handle, environment, clock, log, ids: timeSortedIds(clock) });
