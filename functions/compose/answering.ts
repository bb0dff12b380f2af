/** Connects the relay's ports to this stack's adapters, for every endpoint that answers calls. */
import { createChannelHealth, createLearnedFacts } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { createKeyStore } from '../../shared/adapters/dynamodb/key-store.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { createConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { createSecretStore } from '../../shared/adapters/secrets/secret-store.ts';
import {
  createPseudonym,
  createSealer,
  systemClock,
  systemRandom,
  timeSortedIds,
  inflateWithZlib,
} from '../../shared/adapters/system/node-ports.ts';
import {
  readEnvironment,
  readStateKeys,
  type Environment,
} from '../../shared/adapters/system/environment.ts';
import { createJsonLog, createRequestMetrics } from '../../shared/adapters/telemetry/log.ts';
import { createHttpsTransport } from '../../shared/adapters/transport/https-transport.ts';
import { RetryBudget } from '../../shared/adapters/aws/aws-calls.ts';
import { createRequestSigner } from '../../shared/adapters/aws/aws-signature.ts';
import type { SearchSettings } from '../../shared/config/settings.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { addCors, type Handle, type HostedHandle } from '../../shared/relay/http/http.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import type { ChatPorts } from '../../shared/relay/ports/chat-ports.ts';
import { answerWith } from '../../shared/relay/lifecycle.ts';
import { composeTracedHandle, loadOnFirstCall, connectTables } from './late-adapters.ts';

/** The first request waits for the same read. */
const prepareMsMax = 2_000;

/** @param clock replaced in tests only, to simulate an environment that slept */
export const composeAnsweringHandle = (endpoint: Endpoint, clock: Clock = systemClock): HostedHandle =>
  composeAnsweringHandles(readEnvironment(), clock)(endpoint);

/** The ports of every call, of a client or of a background run. */
export function composeAnsweringPorts(environment: Environment, clock: Clock) {
  const { aws, backgroundFunction: functionName, concurrencyGiven, local, stack, version } = environment;
  const log = createJsonLog(version, createRequestMetrics(stack));
  // Shared by all calls of the tables that clients wait for.
  const repeats = new RetryBudget();
  const client = connectTables(environment, { budget: repeats });
  const config = createConfigSource({ client, clock, random: systemRandom, log, stack });
  const secrets = createSecretStore({ environment, clock, purpose: 'channels' });
  const searchSecrets = createSecretStore({ environment, clock, purpose: 'search' });
  const transport = createHttpsTransport({ local, sign: createRequestSigner({ aws, clock }) });
  const tables = { client, clock, stack };
  const rareDeps = { ...tables, transport, secrets: searchSecrets, region: aws.region };
  const rare = async () => (await import('./rare-adapters.ts')).createRarePorts(rareDeps);
  return {
    clock,
    log,
    config,
    keys: createKeyStore(tables),
    secrets,
    transport,
    searchProvider: (settings: SearchSettings) =>
      loadOnFirstCall(async () => (await rare()).createSearch(settings)),
    concurrencyGiven,
    quotas: createQuotaStore(client, stack),
    counters: loadOnFirstCall(async () => (await rare()).counters),
    health: createChannelHealth({ ...tables, view: config.cooldowns }),
    idempotency: loadOnFirstCall(async () => (await rare()).idempotency),
    inflate: inflateWithZlib,
    sealer: createSealer(readStateKeys()),
    // Without a key, accounts are still kept apart, but a guessed name could be recognised.
    pseudonym: createPseudonym(environment.pseudonymKey ?? stack),
    turnStates: loadOnFirstCall(async () => (await rare()).turnStates),
    refusals: loadOnFirstCall(async () => (await rare()).refusals),
    freeAttempts: loadOnFirstCall(async () => (await rare()).freeAttempts),
    learned: createLearnedFacts({ ...tables, view: config.learned }),
    stored: {
      responses: loadOnFirstCall(async () => (await rare()).responses),
      runs: loadOnFirstCall(async () => (await rare()).runs),
      waiting: loadOnFirstCall(async () => (await rare()).waiting),
      events: loadOnFirstCall(async () => (await rare()).events),
      results: loadOnFirstCall(async () => (await rare()).results),
      startRun:
        functionName === undefined
          ? undefined
          : async (event: object) => (await rare()).createInvoker(functionName)(event),
    },
    random: systemRandom,
    repeats,
  };
}

/** Composes handles that share connections, configuration and caches. The first endpoint names the handle. */
export function composeAnsweringHandles(
  environment: Environment,
  clock: Clock = systemClock,
): (endpoint: Endpoint, ...others: Endpoint[]) => HostedHandle {
  const { functionVersion, local, originSecrets, stack, tracing, version } = environment;
  const logOf = (name: string) =>
    createJsonLog(version, createRequestMetrics(stack, `${name}:${functionVersion}`));
  const sharedPorts = composeAnsweringPorts(environment, clock);
  const { config } = sharedPorts;
  const prepare = (): Promise<void> => config.refresh(prepareMsMax);
  return (endpoint, ...others) => {
    const log = logOf(endpoint.name);
    const ports = { ...sharedPorts, log };
    const handleOf = (given: ChatPorts): Handle => addCors(answerWith(given, endpoint, ...others), config);
    const handle = tracing
      ? composeTracedHandle({
          settings: tracing,
          routes: [endpoint, ...others],
          ports,
          handleOf,
          stack,
          version,
        })
      : handleOf(ports);
    return { handle, prepare, clock, ids: timeSortedIds(clock), log, originSecrets, local };
  };
}
