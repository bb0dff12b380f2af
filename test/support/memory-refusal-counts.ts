import type { HourOfRefusals, RefusalCounts } from '../../shared/relay/ports/money-stores.ts';

export class MemoryRefusalCounts implements RefusalCounts {
  /** All writes. */
  readonly added: HourOfRefusals[] = [];

  add(hour: HourOfRefusals): Promise<void> {
    this.added.push(hour);
    return Promise.resolve();
  }

  since(account: string, hour: string): Promise<HourOfRefusals[]> {
    return Promise.resolve(this.added.filter((one) => one.account === account && one.hour >= hour));
  }
}
