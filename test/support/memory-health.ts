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

/** An item is never written into, so its image is read once for all environments. */
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
 * Channel health of one environment in memory: passes the same contract suite as the DynamoDB adapter, and keeps the same
 * item in the same form. Sees what others wrote when it reads or when it writes, as the real one.
 */
export class MemoryHealth implements ChannelHealth {
  /** What was written, in order; undefined: the entry was removed. */
  readonly writes: (HealthEntry | undefined)[] = [];
  /** Writes that were sent, refused ones included. */
  sent = 0;
  /** What happens before a write is applied. */
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

  /** What an environment does every few seconds. */
  read(): void {
    this.#known = this.#item.now;
  }

  entries(): Promise<ReadonlyMap<number, HealthEntry>> {
    return Promise.resolve(imageOf(this.#known).entries);
  }

  /** The entry of a candidate as the item has it. */
  of(candidateId: string): HealthEntry | undefined {
    return imageOf(this.#item.now).entries.get(keyOf(candidateId));
  }

  /** The entry of a candidate's rate limits of one model. */
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
