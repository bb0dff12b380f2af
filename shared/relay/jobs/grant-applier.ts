/** Applies each grant to its account's balance exactly once, and marks the grant's row with the result. */
import { formatYuan } from '../../billing/money.ts';
import {
  explainChangedGrant,
  buildGrantLedgerRow,
  type Grant,
  formatLedgerTime,
} from '../../billing/ledger-row.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { AppliedGrant, GrantImage, GrantMarks, GrantStore } from '../ports/money-stores.ts';
import type { Metrics } from '../ports/telemetry.ts';
import { Poisoned } from '../ports/store-errors.ts';
import { Backoff } from '../retry.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';

export interface GrantApplierPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  grants: GrantStore;
  metrics: Metrics;
}

const applyBudgetMs = 5_000;
/** Each quarter of an hour reads a part of the table, so a grant that another tool wrote and the stream gave up is found in a day. */
const shareMs = 15 * 60 * 1000;
const shares = 96;
/** This many failures in one run indicate that the store is down; the run stops. */
const failuresMax = 5;
const noAccount =
  'account: had no row in accounts when this grant was applied, so its balance has no customer';
const unusable = "cannot be applied: the account's item in quotas does not take it";

export type GrantApplier = ReturnType<typeof grantApplier>;

export function grantApplier(ports: GrantApplierPorts) {
  return {
    /**
     * Applies a grant once, even when called repeatedly, and marks its row. Rejects with Poisoned when it can
     * never be applied, otherwise with the store's error: the grant then needs a retry.
     */
    apply: (image: GrantImage): Promise<void> => applyAndMark(ports, image),
    /**
     * Applies the grants that the table stream missed: all that are marked as not applied, and of the others those in a part
     * of the table. Continues after a failure and finally rejects with the
     * first one.
     */
    applyMissed: async (): Promise<void> => {
      const failures: unknown[] = [];
      for await (const image of findMissedGrants(ports)) {
        await applyAndMark(ports, image).catch((error: unknown) => {
          if (error instanceof Poisoned) reportPoisoned(ports, image, error);
          else failures.push(error);
        });
        if (failures.length >= failuresMax) break;
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}

async function* findMissedGrants({ grants, clock }: GrantApplierPorts): AsyncGenerator<GrantImage> {
  yield* grants.unapplied();
  yield* grants.unmarked({ part: Math.floor(clock.now() / shareMs) % shares, of: shares });
}

async function applyAndMark(ports: GrantApplierPorts, image: GrantImage): Promise<void> {
  const reading = readRow(GrantRow, image);
  if ('problem' in reading) return mark(ports, image, { problem: reading.problem });
  const grant = reading.row;
  try {
    const applied = await applyOnce(ports, grant);
    const problem = explainChangedGrant(grant.amount, applied.amount);
    const warning = (await ports.grants.hasAccount(grant.account)) ? undefined : noAccount;
    await mark(ports, image, { applied: applied.at, problem, warning });
  } catch (error) {
    if (error instanceof Poisoned) await mark(ports, image, { problem: unusable });
    throw error;
  }
}

/**
 * Only the ledger shows whether a grant is applied. Marks do not: a row copied in a console has the marks of
 * its original.
 */
async function applyOnce({ grants, log, ...ports }: GrantApplierPorts, grant: Grant): Promise<AppliedGrant> {
  const earlier = await grants.find(grant.account, grant.grant_id);
  if (earlier) return earlier;
  const row = buildGrantLedgerRow(grant, formatLedgerTime(Math.floor(ports.clock.now() / 1000)));
  const applied = await new Backoff(ports, applyBudgetMs).until(() => grants.apply(row));
  const { account, grant_id } = grant;
  log.event('grant_applied', { account, grant_id, amount: formatYuan(applied.amount) });
  return applied;
}

/** Unchanged marks are not rewritten, so our own stream events do not loop. */
async function mark({ grants }: GrantApplierPorts, image: GrantImage, marks: GrantMarks): Promise<void> {
  const isMarked = marks.applied === image['_applied'] && image['_unapplied'] === undefined;
  const saysApplied = marks.applied === undefined || isMarked;
  if (saysApplied && marks.problem === image['_problem'] && marks.warning === image['_warning']) return;
  await grants.mark(image.account, image.grant_id, marks);
}

function reportPoisoned({ metrics, log }: GrantApplierPorts, image: GrantImage, error: Poisoned): void {
  metrics.count('GrantPoisoned');
  const { account, grant_id } = image;
  log.event('grant_poisoned', { account, grant_id, problem: error.message });
}
