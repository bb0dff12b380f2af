import type {
  EventBatch,
  EventLog,
  ResponseStore,
  ResultStore,
  StoredResult,
  RunStore,
  ResponseHead,
  StoredResponse,
  RunToStart,
  StoredPorts,
  WaitingRun,
  WaitingRuns,
} from '../../shared/relay/ports/stored.ts';

interface Of {
  account: string;
  id: string;
}

const ended = (head: ResponseHead): boolean => !['queued', 'in_progress'].includes(head.status);

/** The stored items in memory: one copy of each, as in a table. The contract tests compare both. */
export class MemoryStored implements StoredPorts {
  /** The error of the next calls. */
  failing: Error | undefined;
  readonly started: RunToStart[] = [];
  readonly #now: () => number;
  readonly #responses = new Map<string, string>();
  readonly #removed = new Set<string>();
  readonly #events = new Map<string, { batches: EventBatch[]; expires: number }>();
  readonly #results = new Map<string, { result: StoredResult; expires: number }>();

  /** @param clock epoch milliseconds */
  constructor(clock: { now(): number }) {
    this.#now = () => Math.floor(clock.now() / 1000);
  }

  readonly startRun = async (response: RunToStart): Promise<void> => {
    await this.#reached();
    this.started.push(response);
  };

  readonly responses: ResponseStore = {
    put: async (response) => {
      await this.#reached();
      const key = keyOf(response.head);
      if (!this.#responses.has(key) && !this.#removed.has(key)) this.set(response);
    },
    read: async (account, ids, admit) => {
      await this.#reached();
      const found = new Map(
        ids.flatMap((id) => {
          const one = this.#get({ account, id });
          return one ? [[id, one] as const] : [];
        }),
      );
      if (found.size > 0)
        admit?.([...found.values()].reduce((sum, { body }) => sum + JSON.stringify(body).length, 0));
      return found;
    },
    readEach: async (account, ids, take, admit) => {
      const found = await this.responses.read(account, ids, admit);
      return new Map([...found].map(([id, response]) => [id, take(response)]));
    },
    heads: async (account, ids) => {
      const found = await this.responses.read(account, ids);
      return new Map([...found].map(([id, { head }]) => [id, head]));
    },
    remove: async (account, id) => {
      await this.#reached();
      const had = this.#get({ account, id }) !== undefined;
      if (this.#responses.has(keyOf({ account, id }))) this.#removed.add(keyOf({ account, id }));
      this.#drop({ account, id });
      return had;
    },
    withdraw: async (account, id) => {
      await this.#reached();
      this.#removed.add(keyOf({ account, id }));
      this.#drop({ account, id });
    },
  };

  readonly runs: RunStore = {
    claim: async ({ run, ...of }, until) => {
      await this.#reached();
      const found = this.#get(of);
      const isOwn = found?.head.status === 'in_progress' && found.head.background?.run === run;
      if (!found?.head.background || !(found.head.status === 'queued' || isOwn)) return undefined;
      const background = { ...found.head.background, run, until };
      return this.set({ ...found, head: { ...found.head, status: 'in_progress', background } });
    },
    renew: async ({ run, ...of }, until) => {
      await this.#reached();
      const found = this.#get(of);
      if (found?.head.background?.run !== run) return undefined;
      if (found.head.status !== 'in_progress') return found.head;
      const background = { ...found.head.background, until };
      return this.set({ ...found, head: { ...found.head, background } }).head;
    },
    finish: async ({ run, ...of }, response) => {
      await this.#reached();
      const head = this.#get(of)?.head;
      const from = response.head.status === 'cancelled' ? ['in_progress', 'cancelled'] : ['in_progress'];
      if (head?.background?.run !== run || !from.includes(head.status)) return false;
      this.set(response);
      return true;
    },
    cancel: async (account, id) => {
      await this.#reached();
      const found = this.#get({ account, id });
      if (!found || ended(found.head)) return found?.head;
      return this.set({ ...found, head: { ...found.head, status: 'cancelled' } }).head;
    },
    fail: async (account, id, events) => {
      await this.#reached();
      const found = this.#get({ account, id });
      const background = found?.head.background;
      if (!found || !background || ended(found.head) || background.until >= this.#now()) return found?.head;
      const head = { ...found.head, status: 'failed' as const, background: { ...background, events } };
      return this.set({ ...found, head }).head;
    },
  };

  readonly #waiting = new Map<string, string>();
  readonly waiting: WaitingRuns = {
    put: async (run) => {
      await this.#reached();
      this.#waiting.set(run.id, JSON.stringify(run));
    },
    list: async () => {
      await this.#reached();
      return [...this.#waiting.values()].map((text): WaitingRun => JSON.parse(text));
    },
    remove: async ({ id }) => {
      await this.#reached();
      this.#waiting.delete(id);
    },
  };

  readonly events: EventLog = {
    append: async (of, batch, expires) => {
      await this.#reached();
      const log = this.#events.get(keyOf(of)) ?? { batches: [], expires };
      log.batches = [...log.batches.filter(({ from }) => from !== batch.from), batch];
      log.expires = expires;
      this.#events.set(keyOf(of), log);
    },
    after: async (of, sequence) => {
      await this.#reached();
      const log = this.#events.get(keyOf(of));
      if (!log || log.expires <= this.#now()) return [];
      return log.batches.filter(({ from, frames }) => from + frames.length - 1 > sequence);
    },
    last: async (of) => (await this.events.after(of, -1)).at(-1),
  };

  readonly results: ResultStore = {
    put: async ({ account, key }, result, expires) => {
      await this.#reached();
      this.#results.set(keyOf({ account, id: key }), { result, expires });
    },
    read: async ({ account, key }) => {
      await this.#reached();
      const found = this.#results.get(keyOf({ account, id: key }));
      return found && found.expires > this.#now() ? found.result : undefined;
    },
  };

  async #reached(): Promise<void> {
    await Promise.resolve();
    if (this.failing) throw this.failing;
  }

  #drop(of: Of): void {
    this.#responses.delete(keyOf(of));
    this.#events.delete(keyOf(of));
    this.#results.delete(keyOf({ ...of, id: of.id.replace('resp-', '') }));
  }

  /** Sets a response directly, even in a state that no store would produce. */
  set(response: StoredResponse): StoredResponse {
    this.#responses.set(keyOf(response.head), JSON.stringify(response));
    return response;
  }

  #get(of: Of): StoredResponse | undefined {
    const text = this.#responses.get(keyOf(of));
    const found = text === undefined ? undefined : (JSON.parse(text) as StoredResponse);
    return found && found.head.expires > this.#now() ? found : undefined;
  }
}

const keyOf = ({ account, id }: Of): string => `${account}\n${id}`;
