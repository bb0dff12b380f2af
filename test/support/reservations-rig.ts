import type { PlanSlot, ReserveNeed } from '../../shared/billing/reservation.ts';
import { formatPrice, type Price } from '../../shared/billing/price.ts';
import {
  type CloseKind,
  type CloseRecord,
  type QuotaItem,
  findImbalance,
} from '../../shared/billing/quota-item.ts';
import type { Reservation, ReservationRequest } from '../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../shared/relay/money/reservations.ts';
import { refuse } from '../../shared/relay/http/refusal.ts';
import { MemoryKeyCounters } from './memory-key-counters.ts';
import { MemoryQuotaStore } from './memory-quota-store.ts';
import { tokenPriceOf } from './prices.ts';
import { RoughQuotaStore } from './rough-quota-store.ts';
import { VirtualClock } from './virtual-clock.ts';

// Virtual time passes while a file is loaded.
await import('../../shared/relay/money/shards.ts');
await import('../../shared/relay/money/late-writes.ts');

/** 1,000 nano-yuan per token, in and out. */
export const tokenPrice = tokenPriceOf(1_000_000_000n, 1_000_000_000n);
export const callPrice: Price = { type: 'times-billing', rule: 2, perCall: 10_000n };
export const freePrice: Price = { type: 'non-billing', rule: 3 };

export const slot = (itemId: string, limit: number | null): PlanSlot => ({
  itemId,
  name: itemId,
  key: `${itemId}@2026-11-01`,
  staleKey: `${itemId}@2026-09-01`,
  limit,
  resetsAtMs: Date.UTC(2026, 11, 1),
});

/** The real reservations over the in-memory store behind an unreliable network, in virtual time. */
export class ReservationsRig {
  readonly clock = new VirtualClock();
  readonly memory = new MemoryQuotaStore();
  readonly store = new RoughQuotaStore(this.memory, this.clock);
  readonly events: { name: string; fields: Record<string, unknown> }[] = [];
  readonly counters = new MemoryKeyCounters();
  readonly reservations: Reservations;
  #ids = 0;

  constructor() {
    this.reservations = this.otherReservations();
  }

  /** The reservations of another environment: the same store, but without any memory. */
  otherReservations(): Reservations {
    return new Reservations({
      clock: this.clock,
      random: { next: () => 0.5 },
      quotas: this.store,
      counters: this.counters,
      log: {
        request: () => {},
        fault: () => {},
        event: (name, fields) => this.events.push({ name, fields }),
      },
    });
  }

  reservationRequest(need: Partial<ReserveNeed> = {}, account = 'acme'): ReservationRequest {
    this.#ids += 1;
    const whole: ReserveNeed = {
      id: `call${this.#ids}`,
      price: callPrice,
      slots: [],
      estimate: {
        inputTokens: 10,
        inputTokensMax: 20,
        n: 1,
        outputTokensMax: 100,
        outputTokensLeast: 64,
        reservesFully: true,
      },
      key: 'key1',
      nowMs: this.clock.now(),
      reservesNothing: false,
      ...need,
    };
    return {
      account,
      need: whole,
      deadlineMs: this.clock.now() + 600_000,
      entry: {
        input: 10n,
        key: whole.key,
        model: 'm',
        price: formatPrice(whole.price),
        official: false,
      },
      createRefusal: async ({ reason }) => {
        const isBusy = reason === 'contended' || reason === 'out_of_time';
        return refuse(isBusy ? 'unavailable' : 'insufficient_quota', `refused: ${reason}`, {
          reason: `reserve_${reason}`,
        });
      },
    };
  }

  /** When the reserve is rejected, cancels what it may have left. */
  reserve(
    need: Partial<ReserveNeed> | ReservationRequest = {},
    reservations = this.reservations,
  ): Promise<Reservation> {
    const request = 'need' in need ? need : this.reservationRequest(need);
    const admitted = reservations.admit(request);
    const reserve = admitted.then((rateCount) => reservations.reserve({ ...request, rateCount }));
    const reserved = reserve.catch(async (error: unknown) => {
      await reservations.awaitCancel(request.need.id);
      throw error;
    });
    return this.clock.run(reserved);
  }

  close(
    reservation: Reservation,
    charge = 0n,
    kind: CloseKind = charge === 0n ? 'released' : 'settled',
  ): Promise<void> {
    const at = Math.floor(this.clock.now() / 1000);
    const closeRecord: CloseRecord = { id: reservation.id, kind, charge, at };
    return this.clock.run(this.reservations.close(reservation, closeRecord, kind === 'released'));
  }

  get item(): QuotaItem | undefined {
    return this.memory.items.get('acme');
  }

  /** The difference that must not exist in any state: undefined when the reservations balance. */
  get imbalance(): bigint | undefined {
    return this.item && findImbalance(this.item);
  }
}
