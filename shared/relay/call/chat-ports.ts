/** The ports that a call needs. */
import type { SearchSettings } from '../../config/settings/settings.ts';
import type { ChannelHealth } from '../ports/stores/channel-health.ts';
import type { Clock } from '../ports/clock.ts';
import type { ConfigSource } from '../ports/stores/config-store.ts';
import type { Inflate } from '../ports/inflate.ts';
import type { IdempotencyStore } from '../ports/stores/idempotency-store.ts';
import type { Random } from '../ports/ids.ts';
import type { KeyCounters } from '../ports/stores/key-counters.ts';
import type { KeyStore } from '../ports/stores/key-store.ts';
import type { QuotaStore } from '../ports/stores/quota-store.ts';
import type { SearchProvider } from '../ports/search-provider.ts';
import type { SecretStore } from '../ports/stores/secret-store.ts';
import type { RefusalCounts } from '../ports/stores/refusal-counts.ts';
import type { Explaining, Log } from '../ports/telemetry.ts';
import type { Sealer } from '../ports/sealer.ts';
import type { LearnedFacts } from '../ports/stores/learned-facts.ts';
import type { StoredPorts } from '../ports/stored/stored-ports.ts';
import type { TurnStateStore } from '../ports/stores/turn-state-store.ts';
import type { Pseudonym } from '../ports/pseudonym.ts';
import type { UpstreamTransport } from '../ports/upstream-transport.ts';

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
  searchProvider: (settings: SearchSettings) => SearchProvider;
  pseudonym: Pseudonym;
  log: Log & Explaining;
  refusals: RefusalCounts;
  /** See ChatCall. */
  concurrencyGiven?: number | undefined;
  /** See ReservationsPorts. */
  oneItemPerAccount?: boolean | undefined;
}
