/** The ports that a call needs. */
import type { SearchSettings } from '../../config/settings.ts';
import type {
  ChannelHealth,
  IdempotencyStore,
  KeyCounters,
  LearnedFacts,
  TurnStateStore,
} from './runtime-stores.ts';
import type { Clock, Inflate, Random, SearchProvider, Sealer, Pseudonym, UpstreamTransport } from './host.ts';
import type { ConfigSource, KeyStore, SecretStore } from './config-store.ts';
import type { QuotaStore, FreeAttempts, RefusalCounts } from './money-stores.ts';
import type { Log } from './telemetry.ts';
import type { StoredPorts } from './stored.ts';
import type { Repeats } from './store-errors.ts';

export interface ChatPorts {
  clock: Clock;
  config: ConfigSource;
  keys: KeyStore;
  secrets: SecretStore;
  transport: UpstreamTransport;
  quotas: QuotaStore;
  counters: KeyCounters;
  health: ChannelHealth;
  idempotency: IdempotencyStore;
  sealer: Sealer;
  /** For files whose size their bytes hide. */
  inflate: Inflate;
  turnStates: TurnStateStore;
  learned: LearnedFacts;
  stored: StoredPorts;
  random: Random;
  /** Bounds how often calls of the store are repeated. */
  repeats?: Repeats | undefined;
  searchProvider: (settings: SearchSettings) => SearchProvider;
  pseudonym: Pseudonym;
  log: Log;
  refusals: RefusalCounts;
  freeAttempts: FreeAttempts;
  /** See ChatCall. */
  concurrencyGiven?: number | undefined;
}
