/** The ports to what is stored. */
import type { JsonRecord } from '../../wire/json.ts';

export interface RunToStart {
  account: string;
  id: string;
  /** The span of its acceptance, as W3C's Trace Context writes it. */
  traceparent?: string;
}

export interface StoredPorts {
  responses: ResponseStore;
  runs: RunStore;
  waiting: WaitingRuns;
  events: EventLog;
  results: ResultStore;
  /**
   * Starts the run of a queued response, which goes on without the caller. Throws StoreUnavailable. Undefined: nothing here
   * runs what nobody waits for.
   */
  startRun: ((response: RunToStart) => Promise<void>) | undefined;
}

// Stored responses are content: no log and no other table may hold them.

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'incomplete';

/** A stored response without its content. */
export interface ResponseHead {
  /** The account is part of the key, so nobody else can name the response. */
  account: string;
  /** As clients have it: `resp-...`. */
  id: string;
  status: ResponseStatus;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds. From then on it is read by nobody, removed or not. */
  expires: number;
  /** The responses that it goes on from, the nearest first, at most `ancestorsMax`: further ones are those of the last. */
  ancestors: readonly string[];
  /** Its place in its conversation, from 1. */
  turn: number;
  /** UTF-16 code units of the conversation as JSON, this turn included. */
  conversationLength: number;
  background?: BackgroundState | undefined;
}

/** How many responses a head names, so that a conversation of 1,000 turns is found in some 30 reads. */
export const ancestorsMax = 32;

/** The progress of a background response. */
export interface BackgroundState {
  /** Its events are kept: it was created with `stream: true`. */
  streamed: boolean;
  run?: string | undefined;
  /**
   * Unix seconds. A run that has not prolonged this is dead, and what is queued longer never begins: whoever reads the
   * response then finds it failed.
   */
  until: number;
  /** The number of its events, the last included, which is made of the response. */
  events?: number | undefined;
  /** Unix seconds: how long its events are kept. */
  eventsUntil?: number | undefined;
}

export interface ResponseBody {
  /** The items that the request added to the conversation, each with an id. References stay references. */
  input: readonly JsonRecord[];
  /** The response as its client got it. */
  response: JsonRecord;
  /** The state of the turn, sealed, for the calls that go on from it. */
  seal?: string | undefined;
  /** An accepted background call, for its run. Undefined once it is answered. */
  call?: JsonRecord | undefined;
  /** The same by a version before decision 93, which had reserved for it. That version must find no `call` here: it would run it for nothing. */
  request?: JsonRecord | undefined;
}

export interface StoredResponse {
  head: ResponseHead;
  body: ResponseBody;
}

// The store of responses. Reads are consistent, and return nothing that has expired. Every method throws
// StoreUnavailable or StoreBusy.

/** The response is larger than the store takes. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

/**
 * Told how long contents are together (UTF-16 code units of their JSON) before any of them is unpacked. What it throws ends
 * the read.
 */
export type Admit = (length: number) => void;

export interface ResponseStore {
  /**
   * Writes a response, once: visible to every reader when this resolves, and whole. A try that comes after an earlier one
   * changes nothing, whatever the response has become since, also when it was removed. Throws ResponseTooLarge.
   */
  put(response: StoredResponse): Promise<void>;
  /** Reads responses by id. Those of other accounts are left out. */
  read(account: string, ids: readonly string[], admit?: Admit): Promise<ReadonlyMap<string, StoredResponse>>;
  /** The same, of which only that is kept what `take` makes of each: no more than one is in memory whole. */
  readEach<Taken>(
    account: string,
    ids: readonly string[],
    take: (response: StoredResponse) => Taken,
    admit?: Admit,
  ): Promise<ReadonlyMap<string, Taken>>;
  /** The same without content. */
  heads(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, ResponseHead>>;
  /** Removes a response and its events. Invisible to every reader once this resolves. False: there was none. */
  remove(account: string, id: string): Promise<boolean>;
  /** Removes one whose put has no known outcome, also where that is still on its way: it then writes nothing. */
  withdraw(account: string, id: string): Promise<void>;
}

// The states of background responses, each change of them conditional, so that a response has one run and one end:
//
//     queued --claim--> in_progress --finish--> completed, incomplete or failed
//        \                  |
//         --- cancel ---> cancelled --finish--> cancelled, with what the run had written
//
// Every method throws StoreUnavailable or StoreBusy.

export interface Run {
  account: string;
  id: string;
  /** The name of the run: an event may be delivered twice. */
  run: string;
}

export interface RunStore {
  /** Claims a queued response until a time in Unix seconds. Own claims succeed again. Returns nothing if it is not queued, or gone. */
  claim(run: Run, until: number): Promise<StoredResponse | undefined>;
  /** Prolongs the run. The head as it is then: `cancelled` ends the run. */
  renew(run: Run, until: number): Promise<ResponseHead | undefined>;
  /**
   * Ends the run with the whole response. False: it is deleted, or was found dead by a reader, and stays as it is; or it was
   * cancelled, and the response says another status.
   */
  finish(run: Run, response: StoredResponse): Promise<boolean>;
  /** Cancels what is queued or in progress. The head as it is then, also of what had ended before. */
  cancel(account: string, id: string): Promise<ResponseHead | undefined>;
  /** Marks a response whose `until` has passed as failed, with its number of events. The head as it is then. */
  fail(account: string, id: string, events: number): Promise<ResponseHead | undefined>;
}

/** The vendor that has taken a call in a background window. */
export interface Vendor {
  /** The channel's id. `secret` is a reference, never the secret itself. */
  channel: string;
  secret?: string | undefined;
  /** The public base name. */
  model: string;
  /** The address that took the call. */
  url: string;
  vendorId: string;
}

/** A run whose vendor is polled for the answer. */
export interface WaitingRun extends Run {
  vendor: Vendor;
  /** Unix seconds. The run is cancelled after `deadline`. */
  submitted: number;
  deadline: number;
  /** In the format of `serializeReservation`. */
  reservation: string;
}

/** Stored apart from responses, so that a poll reads no content. Every method throws StoreUnavailable or StoreBusy; all are repeatable. */
export interface WaitingRuns {
  put(run: WaitingRun): Promise<void>;
  list(): Promise<WaitingRun[]>;
  remove(run: Pick<WaitingRun, 'id'>): Promise<void>;
}

/**
 * The events of background responses with `stream: true`, in batches, as texts of the stream. Every method throws
 * StoreUnavailable or StoreBusy.
 */
export interface EventBatch {
  /** The sequence number of the first of them. */
  from: number;
  /** Each a frame of the stream, without comments. */
  frames: readonly string[];
}

export interface EventLog {
  /** Appends events that follow those before. Safe to repeat. `expires`: Unix seconds. */
  append(of: { account: string; id: string }, batch: EventBatch, expires: number): Promise<void>;
  /** Batches that end after a sequence number, in order, at most some 1 MB of them at once. Empty: there are none yet. */
  after(of: { account: string; id: string }, sequence: number): Promise<EventBatch[]>;
  /** The batch that ends with the highest number. */
  last(of: { account: string; id: string }): Promise<EventBatch | undefined>;
}

// The first result of an Idempotency-Key. Every method throws StoreUnavailable or StoreBusy.

export interface StoredResult {
  /** The request whose result it is. */
  requestId: string;
  status: number;
  headers: Readonly<Record<string, string>>;
  /** A background response has events instead of a body. */
  body: string | undefined;
}

export interface ResultStore {
  /**
   * `key`: the id of the request. `expires`: Unix seconds. The result goes when the response of that request is removed.
   * Throws ResponseTooLarge.
   */
  put(of: { account: string; key: string }, result: StoredResult, expires: number): Promise<void>;
  read(of: { account: string; key: string }, admit?: Admit): Promise<StoredResult | undefined>;
}
