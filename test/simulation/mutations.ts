import type { AnswerOutcome } from '../../shared/billing/usage.ts';
import type { BillableCall } from '../../shared/relay/money/call-costs.ts';
import type {
  ReservationRequest,
  ReservationsPorts,
  Reservation,
} from '../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../shared/relay/money/reservations.ts';
import type { CloseRecord } from '../../shared/billing/quota-item.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import type { JsonRecord } from '../../shared/wire/json.ts';
import type { WorldKind } from './world-kind.ts';

/**
 * One way to break the product: a wrapper at one of its seams, and the watch's message about it. Mutants without a
 * wrapper here are in the stores (`stored-quotas.ts`, `ledger-stream.ts`, `grants.ts`).
 */
export interface Mutation {
  what: string;
  /** The message when it is noticed. */
  noticed: RegExp;
  /** The first seed whose world notices it, if 8 or later: the search starts here. Default: 1. */
  firstSeed?: number;
  /** Worlds designed for it. */
  kind?: Partial<WorldKind>;
  charges?: (rows: BillableCall['snapshot']['charges']) => BillableCall['snapshot']['charges'];
  /** Changes the answer's outcome before the bill receives it. */
  outcome?: (outcome: AnswerOutcome) => AnswerOutcome;
  /** Changes the model that the bill charges. */
  answered?: (model: string, call: BillableCall) => string;
  /** Changes the service tier that the bill charges. */
  tier?: (sent: string | undefined, reported: string | undefined) => string | undefined;
  /** Changes whether the bill charges a search. */
  searched?: (searched: boolean, outcome: AnswerOutcome) => boolean;
  /** Changes the request to an upstream. */
  body?: (dialect: string, body: JsonRecord) => JsonRecord;
  reservations?: (ports: ReservationsPorts, call: () => BillableCall | undefined) => Reservations;
  /** Wraps the sweeper's store. */
  sweeps?: (close: QuotaStore['close']) => QuotaStore['close'];
  /** Runs every delivery of an event. */
  runsTwice?: boolean;
  losesBudgetCount?: boolean;
  holdsNoBudget?: boolean;
  /** Lets the store mark a code that another account redeemed. */
  redeemsTwice?: boolean;
}

export interface Changes {
  request?: (request: ReservationRequest) => ReservationRequest;
  record?: (record: CloseRecord, reservation: Reservation, call: BillableCall) => CloseRecord;
}

/** The real reservations with other parameters. */
class ChangedReservations extends Reservations {
  readonly #changes: Changes;
  readonly #call: () => BillableCall | undefined;

  constructor(ports: ReservationsPorts, call: () => BillableCall | undefined, changes: Changes) {
    super(ports);
    this.#changes = changes;
    this.#call = call;
  }

  override reserve(request: ReservationRequest): Promise<Reservation> {
    return super.reserve(this.#changes.request?.(request) ?? request);
  }

  override close(reservation: Reservation, record: CloseRecord, releaseSlot: boolean): Promise<void> {
    const call = this.#call();
    const changed = call && this.#changes.record?.(record, reservation, call);
    return super.close(reservation, changed ?? record, releaseSlot);
  }
}

export const changed =
  (changes: Changes): NonNullable<Mutation['reservations']> =>
  (ports, call) =>
    new ChangedReservations(ports, call, changes);

/** The real reservations on a faulty store. */
export const onStore =
  (change: (quotas: QuotaStore) => Partial<QuotaStore>): NonNullable<Mutation['reservations']> =>
  (ports) =>
    new Reservations({ ...ports, quotas: { ...ports.quotas, ...change(ports.quotas) } });
