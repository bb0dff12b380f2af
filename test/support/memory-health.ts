import {
  readHealthImage,
  planHealthWrite,
  type HealthWrite,
} from '../../shared/adapters/dynamodb/health-items.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import {
  healthKeySpace,
  type ChannelHealth,
  type HealthChange,
  type HealthEntry,
} from '../../shared/relay/ports/runtime-stores.ts';
import { hash53 } from '../../shared/wire/ids.ts';

const images = new WeakMap<object, ReturnType<typeof readHealthImage>>();

/** An item is never modified, so its image is parsed once for all environments. */
function imageOf(item: SharedItem['now']): ReturnType<typeof readHealthImage> {
  const image = images.get(item) ?? readHealthImage(item);
  images.set(item, image);
  return image;
}

/** The item that environments share. */
export interface SharedItem {
  now: Record<string, string | number>;
}

/**
 * Channel health of one environment in memory. It passes the same contract as the DynamoDB adapter, and keeps the same
 * item in the same form. Like the real one, it sees other writes only when it reads or writes.
 */
export class MemoryHealth implements ChannelHealth {
  /** The written entries in order; undefined for a removed entry. */
  readonly writes: (HealthEntry | undefined)[] = [];
  /** The number of sent writes, including rejected ones. */
  sent = 0;
  /** Runs before a write is applied. */
  beforeWrite: () => Promise<void> = () => Promise.resolve();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #item: SharedItem;
  #known: SharedItem['now'];

  constructor(clock: Pick<Clock, 'now'>, item: SharedItem = { now: {} }) {
    this.#clock = clock;
    this.#item = item;
    this.#known = item.now;
  }

  /** Another environment beside this one. */
  inNewEnvironment(): MemoryHealth {
    return new MemoryHealth(this.#clock, this.#item);
  }

  /** The regular read of an environment, every few seconds. */
  read(): void {
    this.#known = this.#item.now;
  }

  entries(): Promise<ReadonlyMap<number, HealthEntry>> {
    return Promise.resolve(imageOf(this.#known).entries);
  }

  /** The entry of a candidate as the item stores it. */
  of(candidateId: string): HealthEntry | undefined {
    return imageOf(this.#item.now).entries.get(keyOf(candidateId));
  }

  /** The entry of a candidate's rate limits for one model. */
  limitOf(candidateId: string, model = 'm'): HealthEntry | undefined {
    return imageOf(this.#item.now).entries.get(hash53(model, hash53(candidateId)) % healthKeySpace);
  }

  /** Sets an entry as another environment would. */
  async set(candidateId: string, entry: HealthEntry): Promise<void> {
    await this.inNewEnvironment().change(keyOf(candidateId), () => entry);
    this.read();
  }

  async change(key: number, change: HealthChange): Promise<boolean> {
    for (let tries = 0; tries < 3; tries += 1) {
      const image = imageOf(this.#known);
      const before = image.entries.get(key);
      const entry = change(before);
      const write =
        entry === before ? undefined : planHealthWrite(image, { key, entry, nowMs: this.#clock.now() });
      if (!write) return false;
      this.sent += 1;
      await this.beforeWrite();
      const applied = this.#apply(write);
      this.read();
      if (applied) this.writes.push(entry);
      if (applied) return true;
    }
    return false;
  }

  #apply({ entries, expected }: HealthWrite): boolean {
    const item = this.#item.now;
    if ([...expected].some(([name, text]) => item[name] !== text)) return false;
    const left = Object.entries(item).filter(([name]) => !entries.has(name));
    const set = [...entries].flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const]));
    this.#item.now = Object.fromEntries([...left, ...set]);
    return true;
  }
}

export const keyOf = (candidateId: string): number => hash53(candidateId) % healthKeySpace;
