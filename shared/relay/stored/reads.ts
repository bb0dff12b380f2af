/**
 * Limits what one request may read of its account's stored responses: an amount, and, by `unbilled-limits.ts`,
 * rate and concurrency. A request of three kilobytes can name a hundred contents of megabytes; 16 such requests
 * ended a server with all its tenants. Must be asked before any content is unpacked. Must never ask the store for
 * something without the form of an id: sort keys have other forms too.
 */
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { WorkBudget } from '../money/admission.ts';
import type { MemoryRoom, RelayRequest } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { retry } from '../retry.ts';
import type { Admit, EventLog, ResponseHead, StoredPorts, StoredResponse } from '../ports/stored.ts';

/** The caller. The key decides the account, which is part of the name of everything stored. */
export interface StoredCaller {
  key: KeyRow;
  snapshot: Snapshot;
}

/** `id`: has the form of an id, which is all that is known of it. */
export interface AskedStored {
  id: string;
  request: RelayRequest;
}

export type ReadPorts = Pick<ChatPorts, 'clock' | 'random' | 'stored'>;

/** UTF-16 code units of contents as JSON. Three times what a conversation may have: each response also repeats the tools and the instructions of its request. */
export const unpackedLengthMax = 32 * 1024 * 1024;
const storedId = /^resp-[0-9a-z]{26}$/;
export const isStoredId = (id: string): boolean => storedId.test(id);

/** The same whatever the reason, and of any text that was sent as an id. */
export const refuseUnknownResponse = (id: string): Refusal =>
  refuse('response_not_found', `Response with id '${id.slice(0, 64)}' not found.`, { param: 'id' });

const secondsOf = ({ clock }: Pick<ReadPorts, 'clock'>): number => Math.floor(clock.now() / 1000);

/** The reads of one request. Each throws StoreUnavailable, an InvalidRequest for more than it may read, and a Refusal while the host has no room. */
export class StoredReader {
  readonly account: string;
  readonly #ports: ReadPorts;
  readonly #room: MemoryRoom | undefined;
  readonly #work: WorkBudget | undefined;
  #left = unpackedLengthMax;
  #taken = 0;

  /** `work` is the call's budget; reads of stored objects alone have none. */
  constructor(
    ports: ReadPorts,
    account: string,
    { room, work }: { room?: MemoryRoom | undefined; work?: WorkBudget | undefined } = {},
  ) {
    this.#ports = ports;
    this.account = account;
    this.#room = room;
    this.#work = work;
  }

  readonly admit: Admit = (length) => {
    if (length > this.#left)
      throw new InvalidRequest(
        'conversation_too_long',
        null,
        `The stored responses that this request reads have more than ${unpackedLengthMax} characters of JSON in total. Send the relevant parts as input.`,
      );
    this.#work?.readStored(length);
    if (this.#room?.take(length) === false)
      throw refuse(
        'unavailable',
        'This server has no room for the stored responses right now. Nothing was charged; try again.',
        { headers: { 'retry-after': '1' }, reason: 'server_no_room' },
      );
    this.#left -= length;
    this.#taken += length;
  };

  /** Frees the memory of everything that was read. */
  release(): void {
    this.#room?.give(this.#taken);
    this.#left += this.#taken;
    this.#taken = 0;
  }

  /** One whose run is dead is found failed. Throws the Refusal of what is not found, too. */
  async readResponse(id: string): Promise<StoredResponse> {
    const { responses } = this.#ports.stored;
    const read = async (): Promise<StoredResponse> => {
      this.release();
      const found = await retry(this.#ports, () => responses.read(this.account, [id], this.admit));
      const response = found.get(id);
      if (!response) throw refuseUnknownResponse(id);
      return response;
    };
    const { head, body } = await read();
    const end = await this.findEnd(head);
    // A run that stood still may have ended meanwhile: then its content is newer than what was read.
    return end.status === head.status || end.status === 'failed' ? { head: end, body } : read();
  }

  /** Passes each readable response to `take`; at most one is in memory whole. */
  readEachResponse<T>(
    ids: readonly string[],
    take: (response: StoredResponse) => T,
  ): Promise<ReadonlyMap<string, T>> {
    const { responses } = this.#ports.stored;
    return retry(this.#ports, () => responses.readEach(this.account, ids, take, this.admit));
  }

  /** Finds the state of a response. If its run died, it has failed. */
  findEnd(head: ResponseHead): Promise<ResponseHead> {
    return retry(this.#ports, () => failIfRunDied(this.#ports.stored, head, secondsOf(this.#ports)));
  }
}

/**
 * Every reader finds the same state of a background response. A run that has not extended its claim is dead: it may write
 * nothing more, even if it comes back. A run writes no event after its claim has expired. Readers wait this much longer, so
 * that an event on its way arrives before they count.
 */
const graceSeconds = 5;

/** Kept after the last event of a run that is about to end, so that readers look at the response at once. No event. */
export const endMark = '';

const isOver = ({ status }: ResponseHead): boolean => status !== 'queued' && status !== 'in_progress';

/** The head, of a response whose run is dead as failed. Whoever reads a head calls this before anything else. */
export async function failIfRunDied(
  { events, runs }: { events: Pick<EventLog, 'last'>; runs: Pick<StoredPorts['runs'], 'fail'> },
  head: ResponseHead,
  atSeconds: number,
): Promise<ResponseHead> {
  const { background } = head;
  if (isOver(head) || !background || background.events !== undefined) return head;
  if (atSeconds <= background.until + graceSeconds) return head;
  const count = background.streamed ? (await countStoredEvents(events, head)) + 1 : 0;
  return (await runs.fail(head.account, head.id, count)) ?? head;
}

/**
 * The number of its events including the last, unless it still runs or was cancelled before its run reported what
 * it had written.
 */
export async function countEventsAtEnd(
  events: Pick<EventLog, 'last'>,
  head: ResponseHead,
  atSeconds: number,
): Promise<number | undefined> {
  const { background } = head;
  if (!background || !isOver(head)) return undefined;
  if (background.events !== undefined) return background.events;
  const waits = background.run !== undefined && atSeconds <= background.until + graceSeconds;
  return waits ? undefined : (await countStoredEvents(events, head)) + 1;
}

/**
 * The number of events that are kept; the first is also there when it is not. A run writes a batch once those before it are
 * kept, so the last one tells.
 */
export async function countStoredEvents(
  events: Pick<EventLog, 'last'>,
  { account, id }: { account: string; id: string },
): Promise<number> {
  const { from, frames } = (await events.last({ account, id })) ?? { from: 0, frames: [] };
  return Math.max(1, from + frames.filter((frame) => frame !== endMark).length);
}
