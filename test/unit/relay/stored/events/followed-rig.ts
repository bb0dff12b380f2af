import { KeyRow } from '../../../../../shared/config/rows/key-row.ts';
import { defaultSettings } from '../../../../../shared/config/settings.ts';
import type { RelayRequest } from '../../../../../shared/relay/http/http.ts';
import type { EventLog, ResponseStatus } from '../../../../../shared/relay/ports/stored.ts';
import { createEventWriter, type EventWriter } from '../../../../../shared/relay/stored/run-recorder.ts';
import { followResponse } from '../../../../../shared/relay/stored/follow.ts';
import { MemoryStored } from '../../../../support/memory-stored.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';

export const account = 'acme';
export const id = 'resp-00000000000000000000000001';

/** The events that one reader got. */
export interface Read {
  /** Whole events, without comments. */
  events: string[];
  comments: number;
  /** Undefined if the stream ended. */
  broken: unknown;
}

export const accepted = { id, object: 'response', status: 'queued', model: 'm', output: [], error: null };
const asked = { role: 'user', content: 'hi' };

export const frame = (type: string, number: number, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...more })}\n\n`;

/** The texts of an answer of `count` pieces, as its renderer makes them. */
export const answerTexts = (count: number, piece = 'piece'): string[] => [
  frame('response.created', 0, { response: { ...accepted, status: 'in_progress' } }),
  frame('response.in_progress', 1),
  ...Array.from({ length: count }, (_, i) =>
    frame('response.output_text.delta', i + 2, { delta: `${piece} ${i}` }),
  ),
];

export const typeOf = (text: string): string => text.slice('event: '.length, text.indexOf('\n'));
export const dataOf = (text: string): Record<string, unknown> =>
  JSON.parse(text.slice(text.indexOf('\ndata: ') + 7));

/** A background response, its run as the product's run does it, and readers. */
export class FollowedRig {
  readonly clock = new VirtualClock();
  readonly stored = new MemoryStored(this.clock);
  readonly logged: { name: string; fields: Record<string, unknown> }[] = [];
  readonly faults: unknown[] = [];
  /** Calls of the store, by name. */
  readonly calls = { after: 0, append: 0, heads: 0, read: 0 };
  /** Runs before the event log does its work; it may throw. */
  before: (what: 'append' | 'after') => void | Promise<void> = () => {};
  /** The same after its work: the reply is lost. */
  afterwards: (what: 'append' | 'after') => void = () => {};
  until = 0;

  now(): number {
    return Math.floor(this.clock.now() / 1000);
  }

  readonly log = {
    request: () => {},
    event: (name: string, fields: Record<string, unknown>) => void this.logged.push({ name, fields }),
    fault: (_id: string, error: unknown) => void this.faults.push(error),
  };

  readonly events: EventLog = {
    append: async (...given) => {
      this.calls.append += 1;
      await this.before('append');
      await this.stored.events.append(...given);
      this.afterwards('append');
    },
    after: async (...given) => {
      this.calls.after += 1;
      await this.before('after');
      // A store returns some 1 MB at once.
      return (await this.stored.events.after(...given)).slice(0, 16);
    },
    last: async (...given) => {
      await this.before('after');
      return this.stored.events.last(...given);
    },
  };

  async accept({ streamed = true, background = true } = {}): Promise<void> {
    this.until = this.now() + 60;
    this.stored.set({
      head: {
        account,
        id,
        status: 'queued',
        createdAt: this.now(),
        expires: this.now() + 30 * 86_400,
        ancestors: [],
        turn: 1,
        conversationLength: 2,
        ...(background && { background: { streamed, until: this.until } }),
      },
      body: { input: [asked], response: accepted, request: { model: 'm' } },
    });
  }

  /** Claims the response. */
  async begin(): Promise<EventWriter> {
    const claimed = await this.stored.runs.claim({ account, id, run: 'first' }, this.until);
    if (!claimed) throw new Error('not claimed');
    return createEventWriter(
      { clock: this.clock, log: this.log, events: this.events },
      {
        account,
        id,
        accepted: claimed.body.response,
        expires: this.now() + 1_500,
        mayWrite: () => this.now() <= this.until,
      },
    );
  }

  async finish(
    writer: EventWriter,
    more: { status?: ResponseStatus; error?: object } = {},
  ): Promise<boolean> {
    const { status = 'completed', error = null } = more;
    const events = await writer.finished();
    const found = (await this.stored.responses.read(account, [id])).get(id);
    if (!found) return false;
    const { head } = found;
    const background = {
      streamed: true,
      run: 'first',
      until: this.until,
      events,
      eventsUntil: this.now() + 600,
    };
    return this.stored.runs.finish(
      { account, id, run: 'first' },
      {
        head: { ...head, status, background },
        body: { input: [asked], response: { ...accepted, status, output: ['all of it'], error } },
      },
    );
  }

  /** A whole run: one text every `everyMs`. */
  async run(texts = answerTexts(8), everyMs = 100): Promise<void> {
    const writer = await this.begin();
    for (const text of texts) {
      writer.wrote(text);
      await this.clock.sleep(everyMs);
    }
    writer.wrote(frame('response.completed', texts.length));
    await this.finish(writer);
  }

  request(more: Partial<RelayRequest> & { after?: number | string } = {}): RelayRequest {
    const { after, ...rest } = more;
    return {
      id: '00000000000000000000000002',
      method: 'GET',
      path: `/v1/responses/${id}`,
      query: new URLSearchParams(after === undefined ? {} : { starting_after: String(after) }),
      headers: {},
      baseUrl: 'https://relay.test/v1',
      json: async () => ({}),
      rawBody: () => '',
      hostDeadlineMs: this.clock.now() + 900_000,
      ...rest,
    };
  }

  follow(more: Parameters<FollowedRig['request']>[0] & { by?: string; named?: string } = {}) {
    const { by = account, named = id, ...rest } = more;
    const { stored, calls } = this;
    const responses = {
      ...stored.responses,
      heads: (...given: Parameters<typeof stored.responses.heads>) => {
        calls.heads += 1;
        return stored.responses.heads(...given);
      },
      read: (...given: Parameters<typeof stored.responses.read>) => {
        calls.read += 1;
        return stored.responses.read(...given);
      },
    };
    return followResponse(
      {
        clock: this.clock,
        log: this.log,
        random: { next: () => 0.5 },
        stored: {
          responses,
          runs: stored.runs,
          waiting: stored.waiting,
          events: this.events,
          results: stored.results,
          startRun: stored.startRun,
        },
      },
      {
        key: KeyRow.parse({ hash: 'a'.repeat(64), account: by, store: true }),
        snapshot: {
          publishedAt: 1,
          channels: [],
          charges: [],
          plans: [],
          models: [],
          settings: defaultSettings,
        },
      },
      { id: named, request: this.request(rest) },
    );
  }

  /** Follows, and leaves after a number of events. */
  async read(
    more: Parameters<FollowedRig['follow']>[0] & { leaveAfter?: number; slowMs?: number } = {},
  ): Promise<Read> {
    const { leaveAfter = Infinity, slowMs = 0, ...rest } = more;
    const response = await this.follow(rest);
    const read: Read = { events: [], comments: 0, broken: undefined };
    let waiting = '';
    try {
      for await (const text of response.body as AsyncIterable<string>) {
        waiting += text;
        for (let end = waiting.indexOf('\n\n'); end >= 0; end = waiting.indexOf('\n\n')) {
          const one = waiting.slice(0, end + 2);
          waiting = waiting.slice(end + 2);
          if (one.startsWith(':')) read.comments += 1;
          else if (read.events.length < leaveAfter) read.events.push(one);
        }
        if (read.events.length >= leaveAfter) break;
        if (slowMs > 0) await this.clock.sleep(slowMs);
      }
    } catch (error) {
      read.broken = error;
    }
    await response.done;
    return read;
  }
}
