/** The composition that the answering functions share: they differ in their endpoint alone. */
import { withCors } from '../relay/cors.ts';
import type { Endpoint } from '../relay/endpoint.ts';
import { relay } from '../relay/pipeline.ts';
import { DynamoChannelHealth } from './channel-health.ts';
import { signedTransport } from './channel-types/signed-transport.ts';
import { systemClock } from './clock.ts';
import { documentClient } from './dynamo.ts';
import { streamingHandler } from './edge/streaming-handler.ts';
import { trapRejections } from './edge/trap-rejections.ts';
import { readEnvironment } from './environment.ts';
import { dynamoIdempotencyStore } from './idempotency-store.ts';
import { timeSortedIds } from './ids.ts';
import { dynamoKeyStore } from './key-store.ts';
import { jsonLog } from './log.ts';
import { dynamoQuotaStore } from './quota-store.ts';
import { systemRandom } from './random.ts';
import { requestMetrics } from './request-metrics.ts';
import { runtimeView } from './runtime-view.ts';
import { searchProviders } from './search/search-provider.ts';
import { secretStore } from './secret-store.ts';
import { upstreamTransport } from './upstream-transport.ts';

/** The Lambda handler of an endpoint behind a streaming Function URL. */
export function answeringHandler(endpoint: Endpoint): ReturnType<typeof streamingHandler> {
  const environment = readEnvironment();
  const { stack, local, version } = environment;
  const clock = systemClock;
  const log = jsonLog(version, requestMetrics(stack));
  trapRejections(log);

  const client = documentClient(environment.aws);
  const runtime = runtimeView({ client, clock, log, stack });
  const { config } = runtime;
  const secrets = secretStore({ environment, clock });
  const transport = signedTransport({
    transport: upstreamTransport({ local }),
    aws: environment.aws,
    clock,
  });
  const ports = {
    clock,
    log,
    config,
    keys: dynamoKeyStore({ client, clock, stack }),
    secrets,
    transport,
    searchProvider: searchProviders({ transport, secrets }),
    quotas: dynamoQuotaStore(client, stack),
    health: new DynamoChannelHealth({ client, clock, stack, cooldowns: () => runtime.cooldowns() }),
    idempotency: dynamoIdempotencyStore(client, clock, stack),
    random: systemRandom,
  };
  const handle = withCors(relay(ports, endpoint), config);
  return streamingHandler({ handle, environment, clock, log, ids: timeSortedIds(clock) });
}
