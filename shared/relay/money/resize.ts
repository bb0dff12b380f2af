/** Splits a busy account into parts, joins a quiet one, and drops what older versions left in it. Must never keep a call waiting or make it fail. */
import { joinWrite } from '../../billing/parts/gather.ts';
import { affordableParts, splitWrite, wantedParts } from '../../billing/parts/split.ts';
import { accountRate, type QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveNeed } from '../../billing/reservation.ts';
import { StoreBusy, StoreUnavailable } from '../ports/stores/store-errors.ts';
import type { ReservationsPorts } from './open-reservation.ts';

const partsMax = 64;
const triesMax = 2;

export interface SplitRequest {
  /** The part as a reserve returned it. */
  item: QuotaItem;
  /** Its slots have the limits of plan slots. */
  need: Pick<ReserveNeed, 'slots'>;
  /** The store put the reserve off. */
  throttled: boolean;
}

/** Splits the account to the number of parts that its traffic needs. If others change it meanwhile, tries once more. */
export async function split(
  ports: ReservationsPorts,
  { item, need, throttled }: SplitRequest,
): Promise<void> {
  const { quotas, clock, log } = ports;
  const { account, parts } = item;
  const atLeast = throttled ? Math.min(partsMax, 2 * parts) : parts;
  const wanted = Math.max(atLeast, wantedParts(item, clock.now()));
  if (wanted <= parts) return;
  const limits = new Map(need.slots.map(({ key, limit }) => [key, limit]));
  await unlessBusy(async () => {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const images = await quotas.read(account, wanted, true);
      const count = affordableParts(images, wanted);
      const shared = images.filter(({ part }) => part < count);
      const write = splitWrite(shared, count, limits);
      if (!write) return;
      if (await quotas.move(write)) return log.event('account_split', { account, parts: count });
    }
  });
}

/** Joins the account if nothing is open but in part 0. */
export async function join({ quotas, log }: ReservationsPorts, { account, parts }: QuotaItem): Promise<void> {
  await unlessBusy(async () => {
    const images = await quotas.read(account, parts, true);
    const write = joinWrite(images);
    if (write && images.length === images[0]?.parts && (await quotas.move(write)))
      log.event('account_joined', { account });
  });
}

/** Of each kind: DynamoDB bounds the length of a condition. */
const droppedMax = 40;
/** The version before parts may run beside this one, with a clock that is behind. */
const countedMinutes = 2;

/**
 * Removes counts of keys that versions before parts left: they would make every write of the account dearer for ever. One
 * write drops some; the next calls drop the rest.
 */
export async function dropCounts(
  { quotas, clock }: ReservationsPorts,
  { account, part, rate, busy }: QuotaItem,
): Promise<void> {
  const before = Math.floor(clock.now() / 60_000) - countedMinutes;
  const old = [...rate].filter(([key, { minute }]) => key !== accountRate && minute < before);
  const minutes = new Map(old.slice(0, droppedMax).map(([key, { minute }]) => [key, minute]));
  const idle = [...busy].flatMap(([key, count]) => (count === 0 ? [key] : [])).slice(0, droppedMax);
  if (minutes.size + idle.length === 0) return;
  await unlessBusy(async () => void (await quotas.dropCounts({ account, part, minutes, idle })));
}

/** What did not work now is tried again by later calls. */
async function unlessBusy(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof StoreBusy || error instanceof StoreUnavailable)) throw error;
  }
}
