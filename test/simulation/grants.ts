import { formatYuan } from '../../shared/billing/money.ts';
import { grantApplier, type GrantApplier } from '../../shared/relay/jobs/grant-applier.ts';
import type { AppliedGrant, GrantImage, GrantStore } from '../../shared/relay/ports/money-stores.ts';
import type { Metrics, Log } from '../../shared/relay/ports/telemetry.ts';
import type { Environment } from './environment.ts';
import type { Mutant } from './mutant.ts';
import type { Network } from './networked-store.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { StoredQuotas } from './stored-quotas.ts';

/** The grants table, the ledger rows of grants, and the transaction over both. */
export class StoredGrants {
  readonly rows = new Map<string, GrantImage>();
  readonly applied = new Map<string, AppliedGrant>();
  readonly #mutant: Mutant | undefined;
  readonly #quotas: StoredQuotas;
  readonly #applies: (account: string, amount: bigint) => void;

  /** `applies` receives each applied grant once. */
  constructor(
    mutant: Mutant | undefined,
    quotas: StoredQuotas,
    applies: (account: string, amount: bigint) => void,
  ) {
    this.#mutant = mutant;
    this.#quotas = quotas;
    this.#applies = applies;
  }

  write(account: string, grantId: string, amount: bigint): GrantImage {
    const image: GrantImage = { account, grant_id: grantId, amount: formatYuan(amount) };
    this.rows.set(`${account} ${grantId}`, image);
    return image;
  }

  #find(account: string, grantId: string): AppliedGrant | undefined {
    return this.#mutant === 'grant_marker_ignored' ? undefined : this.applied.get(`${account} ${grantId}`);
  }

  reachedBy(network: Network): GrantStore {
    const rows = this.rows;
    return {
      find: (account, grantId) => network.send(() => Promise.resolve(this.#find(account, grantId))),
      hasAccount: () => network.send(() => Promise.resolve(true)),
      apply: (row) =>
        network.send(() => {
          const grantId = row.id.replace('grant#', '');
          const earlier = this.#find(row.account, grantId);
          if (earlier) return Promise.resolve(earlier);
          const key = `${row.account} ${grantId}`;
          const applied = { amount: row.amount, at: row.at };
          if (!this.applied.has(key)) this.#applies(row.account, row.amount);
          this.applied.set(key, applied);
          this.#quotas.grant(row.account, row.amount);
          return Promise.resolve(applied);
        }),
      mark: (account, grantId, marks) =>
        network.send(() => {
          const image = rows.get(`${account} ${grantId}`);
          if (image && marks.applied !== undefined) image['_applied'] = marks.applied;
          return Promise.resolve();
        }),
      async *unapplied() {
        const images = await network.send(() => Promise.resolve([...rows.values()]));
        yield* images.filter((image) => image['_applied'] === undefined);
      },
      async *unmarked() {
        // All rows of this world are marked.
      },
    };
  }
}

export const grantApplierIn = (
  environment: Environment,
  network: Network,
  grants: StoredGrants,
  random: SeededRandom,
  metrics: Metrics,
  log: Log,
): GrantApplier =>
  grantApplier({ clock: environment, random, grants: grants.reachedBy(network), metrics, log });
