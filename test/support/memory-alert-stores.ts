import type { Notice } from '../../shared/wire/public-api.ts';
import {
  type AlertMark,
  type AlertStore,
  type RaisedMark,
  receivers,
  type NoticeStore,
  type Receiver,
  type StoredNotice,
} from '../../shared/relay/ports/alerts.ts';

/** Marks and notices in memory; they pass the contract in `test/contract/alert-stores.ts`. */
export class MemoryAlertStores implements AlertStore, NoticeStore {
  readonly kept = new Map<string, AlertMark>();
  /** Every stored notice, in order. */
  readonly put: Notice[] = [];
  readonly #notices = new Map<string, StoredNotice>();
  readonly #waiting = new Set<string>();

  async marks(causes: readonly string[]): Promise<ReadonlyMap<string, AlertMark>> {
    return new Map(
      causes.flatMap((cause) => {
        const mark = this.kept.get(cause);
        return mark ? [[cause, mark] as const] : [];
      }),
    );
  }

  async raise({ cause, seen, notice }: RaisedMark): Promise<boolean> {
    if (!this.#isAsSeen(cause, seen)) return false;
    this.kept.set(cause, { open: true, changes: (seen?.changes ?? 0) + 1 });
    this.put.push(notice);
    this.#notices.set(notice.id, { notice, tries: 0, dueMs: 0, left: [...receivers] });
    return true;
  }

  async clear(cause: string, seen: AlertMark): Promise<boolean> {
    if (!this.#isAsSeen(cause, seen)) return false;
    this.kept.set(cause, { open: false, changes: seen.changes + 1 });
    return true;
  }

  #isAsSeen(cause: string, seen: AlertMark | undefined): boolean {
    const mark = this.kept.get(cause);
    return mark?.changes === seen?.changes && mark?.open === seen?.open;
  }

  async find(id: string): Promise<StoredNotice | undefined> {
    const found = this.#notices.get(id);
    return found && found.left.length > 0 ? found : undefined;
  }

  async claim(id: string, tries: number, dueMs: number): Promise<boolean> {
    const found = this.#notices.get(id);
    if (found?.tries !== tries) return false;
    this.#notices.set(id, { ...found, tries: tries + 1, dueMs });
    return true;
  }

  async leave(id: string, tries: number, left: readonly Receiver[]): Promise<void> {
    const found = this.#notices.get(id);
    if (found?.tries === tries) this.#notices.set(id, { ...found, left: [...left] });
  }

  async waiting(): Promise<string[]> {
    return [...this.#waiting];
  }

  async await(id: string): Promise<void> {
    this.#waiting.add(id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#waiting.delete(id);
  }
}
