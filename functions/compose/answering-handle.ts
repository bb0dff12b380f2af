/** The composition that the answering functions share: they differ in their endpoint alone. */
import { withCors } from '../../shared/relay/http/cors.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { answerWith } from '../../shared/relay/serving.ts';
import { DynamoChannelHealth } from '../../shared/adapters/dynamodb/dynamo-channel-health.ts';
import { signedTransport } from '../../shared/adapters/transport/signed-transport.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { documentClient } from '../../shared/adapters/dynamodb/dynamo-client.ts';
import { streamingHandler } from '../../shared/adapters/lambda/streaming-handler.ts';
import { trapRejections } from '../../shared/adapters/lambda/trap-rejections.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { dynamoIdempotencyStore } from '../../shared/adapters/dynamodb/dynamo-idempotency-store.ts';
import { timeSortedIds } from '../../shared/adapters/system/time-sorted-ids.ts';
import { dynamoKeyStore } from '../../shared/adapters/dynamodb/dynamo-key-store.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { dynamoQuotaStore } from '../../shared/adapters/dynamodb/quotas/dynamo-quota-store.ts';
import { systemRandom } from '../../shared/adapters/system/system-random.ts';
import { requestMetrics } from '../../shared/adapters/telemetry/request-metrics.ts';
import { runtimeView } from '../../shared/adapters/dynamodb/runtime/dynamo-config-source.ts';
import { searchProviders } from '../../shared/adapters/search/search-providers.ts';
import { secretStore } from '../../shared/adapters/secrets/cached-secret-store.ts';
import { upstreamTransport } from '../../shared/adapters/transport/https-upstream-transport.ts';

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
  const handle = withCors(answerWith(ports, endpoint), config);
  return streamingHandler({ handle, environment, clock, log, ids: timeSortedIds(clock) });
}
