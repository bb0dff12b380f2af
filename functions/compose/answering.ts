/** Connects the relay's ports to this stack's adapters, for every endpoint that answers calls. */
import { dynamoChannelHealth, dynamoLearnedFacts } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { dynamoIdempotencyStore } from '../../shared/adapters/dynamodb/idempotency-store.ts';
import { dynamoKeyCounters } from '../../shared/adapters/dynamodb/key-budgets.ts';
import { dynamoRefusalCounts } from '../../shared/adapters/dynamodb/refusal-counts.ts';
import { dynamoTurnStateStore } from '../../shared/adapters/dynamodb/turn-states.ts';
import { functionInvoker } from '../../shared/adapters/aws/function-invoker.ts';
import { searchProviders } from '../../shared/adapters/transport/search-providers.ts';
import { dynamoKeyStore } from '../../shared/adapters/dynamodb/key-store.ts';
import { dynamoQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { dynamoConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { cachedSecretStore } from '../../shared/adapters/secrets/secret-store.ts';
import {
  hmacPseudonym,
  aesSealer,
  systemClock,
  systemRandom,
  timeSortedIds,
  zlibInflate,
} from '../../shared/adapters/system/node-ports.ts';
import { readEnvironment, readSealKeys, type Environment } from '../../shared/adapters/system/environment.ts';
import { jsonLog, requestMetrics } from '../../shared/adapters/telemetry/log.ts';
import { httpsUpstreamTransport } from '../../shared/adapters/transport/https-transport.ts';
import { RetryBudget } from '../../shared/adapters/aws/aws-calls.ts';
import { requestSigner } from '../../shared/adapters/aws/aws-signature.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { addCors, type Handle, type HostedHandle } from '../../shared/relay/http/http.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import type { ChatPorts } from '../../shared/relay/ports/chat-ports.ts';
import { answerWith } from '../../shared/relay/lifecycle.ts';
import { lateTracing, lazily, tablesOf } from './late-adapters.ts';

/** How long an environment that starts waits for the configuration; its first request waits for the same read. */
const prepareMsMax = 2_000;

/** @param clock another one only in tests: of an environment that has slept */
export const answeringHandle = (endpoint: Endpoint, clock: Clock = systemClock): HostedHandle =>
  answeringHandles(readEnvironment(), clock)(endpoint);

/** What calls are answered with, whoever waits for them. */
export function answeringPorts(environment: Environment, clock: Clock) {
  const { aws, concurrencyGiven, local, stack, version } = environment;
  const { backgroundFunction: functionName } = environment;
  const log = jsonLog(version, requestMetrics(stack));
  // Of all that this process asks of the tables while clients wait.
  const repeats = new RetryBudget();
  const client = tablesOf(environment, { budget: repeats });
  const config = dynamoConfigSource({ client, clock, random: systemRandom, log, stack });
  const secrets = cachedSecretStore({ environment, clock, purpose: 'channels' });
  const searchSecrets = cachedSecretStore({ environment, clock, purpose: 'search' });
  const transport = httpsUpstreamTransport({ local, sign: requestSigner({ aws, clock }) });
  const tables = { client, clock, stack };
  const stored = async () =>
    (await import('../../shared/adapters/dynamodb/responses/response-store.ts')).dynamoStored(tables);
  return {
    clock,
    log,
    config,
    keys: dynamoKeyStore(tables),
    secrets,
    transport,
    searchProvider: searchProviders({ transport, secrets: searchSecrets }),
    concurrencyGiven,
    quotas: dynamoQuotaStore(client, stack),
    counters: dynamoKeyCounters(client, stack),
    health: dynamoChannelHealth({ ...tables, view: config.cooldowns }),
    idempotency: dynamoIdempotencyStore(client, clock, stack),
    inflate: zlibInflate,
    sealer: aesSealer(readSealKeys()),
    // Without a key accounts are kept apart as well; only somebody who guesses names could then recognise them.
    pseudonym: hmacPseudonym(environment.pseudonymKey ?? stack),
    turnStates: dynamoTurnStateStore(tables),
    refusals: dynamoRefusalCounts(client, stack),
    learned: dynamoLearnedFacts({ ...tables, view: config.learned }),
    stored: {
      responses: lazily(async () => (await stored()).responses),
      runs: lazily(async () => (await stored()).runs),
      events: lazily(async () => (await stored()).events),
      results: lazily(async () => (await stored()).results),
      // Without the function nothing here runs what nobody waits for.
      startRun:
        functionName === undefined
          ? undefined
          : functionInvoker({ transport, region: aws.region, functionName }),
    },
    random: systemRandom,
    repeats,
  };
}

/** For a host with several endpoints in one process: they share connections, configuration and caches. The first names the handle. */
export function answeringHandles(
  environment: Environment,
  clock: Clock = systemClock,
): (endpoint: Endpoint, ...others: Endpoint[]) => HostedHandle {
  const { functionVersion, local, originSecrets, stack, tracing, version } = environment;
  const logOf = (name: string) => jsonLog(version, requestMetrics(stack, `${name}:${functionVersion}`));
  const shared = answeringPorts(environment, clock);
  const { config } = shared;
  const prepare = (): Promise<void> => config.refresh(prepareMsMax);
  return (endpoint, ...others) => {
    const log = logOf(endpoint.name);
    const ports = { ...shared, log };
    const handleOf = (given: ChatPorts): Handle => addCors(answerWith(given, endpoint, ...others), config);
    const handle = tracing
      ? lateTracing({ settings: tracing, routes: [endpoint, ...others], ports, handleOf, stack, version })
      : handleOf(ports);
    return { handle, prepare, clock, ids: timeSortedIds(clock), log, originSecrets, local };
  };
}
