import { convertFen, isOn, type AutoTopUp } from '../../shared/billing/auto-top-up.ts';
import type { AutoTopUpStore } from '../../shared/relay/ports/alerts.ts';
import type { Notice } from '../../shared/wire/public-api.ts';

/** Automatic top-ups in memory; they pass the contract in `test/contract/auto-top-ups.test.ts`. */
export class MemoryAutoTopUps implements AutoTopUpStore {
  readonly kept = new Map<string, AutoTopUp>();
  readonly notices: Notice[] = [];
  /** Grants in the ledger, as `account id`. */
  readonly credited = new Set<string>();
  /** Runs before and after each call: may wait or reject. */
  disturb: () => Promise<void> = async () => {};

  async find(account: string): Promise<AutoTopUp | undefined> {
    await this.disturb();
    return structuredClone(this.kept.get(account));
  }

  async below(account: string): Promise<bigint | undefined> {
    const auto = this.kept.get(account);
    return auto?.terms && isOn(auto) ? convertFen(auto.terms.below) : undefined;
  }

  async isCredited(account: string, payment: string): Promise<boolean> {
    await this.disturb();
    return this.credited.has(`${account} ${payment}`);
  }

  async listActive(accounts: readonly string[]): Promise<string[]> {
    return accounts.filter((account) => {
      const auto = this.kept.get(account);
      return auto !== undefined && (isOn(auto) || (auto.off !== undefined && !auto.told));
    });
  }

  async write(after: AutoTopUp, notice?: Notice): Promise<boolean> {
    await this.disturb();
    const isNext = (this.kept.get(after.account)?.version ?? 0) === after.version - 1;
    if (isNext) {
      this.kept.set(after.account, structuredClone(after));
      if (notice) this.notices.push(notice);
    }
    await this.disturb();
    return isNext;
  }

  async change(
    account: string,
    apply: (auto: AutoTopUp | undefined) => AutoTopUp | undefined,
  ): Promise<AutoTopUp | undefined> {
    for (;;) {
      const after = apply(await this.find(account));
      if (!after || (await this.write(after))) return after;
    }
  }
}
