import type { UpstreamEvent } from '../../shared/upstreams/body-events.ts';
import {
  CannotCarry,
  type AnswerReader,
  type AnswerReport,
  type Dialect,
  type ReaderContext,
} from '../../shared/upstreams/dialect.ts';
import { chat } from '../../shared/upstreams/dialects/chat/request.ts';
import { ErrorInAnswer } from '../../shared/upstreams/exchange.ts';
import type { ChatChunk } from '../../shared/wire/chat-response.ts';
import { asRecord } from '../../shared/wire/json.ts';
import type { StatePart } from '../../shared/wire/turn-state.ts';
import { data, done, type Step } from './core-rig.ts';

/**
 * Dialects whose turns have state: `x_mark` of an event is opaque, and `x_states` of a body lists the states that it
 * contains. A body for the model `narrow` cannot carry `n`, nor one for `half` in `responses`; `x_error` of an event is
 * an error in the answer.
 */
const stateful = (name: string, path: string): Dialect => ({
  ...chat,
  name,
  path,
  body(call, settings) {
    const { n } = call.request;
    if ((settings.model === 'narrow' || (settings.model === 'half' && name === 'responses')) && n)
      throw new CannotCarry('n', 'This upstream gives one answer.');
    const sent = chat.body(call, settings);
    const bare = settings.omissions.has('state');
    const states = call.request.messages.flatMap(
      (message) => (bare ? undefined : settings.states.get(message)) ?? [],
    );
    const limit = sent.body['max_tokens'];
    if (settings.omissions.has('limit')) delete sent.body['max_tokens'];
    return {
      ...sent,
      dropped: bare && settings.states.size > 0 ? [...sent.dropped, 'reasoning'] : sent.dropped,
      body: { ...sent.body, x_states: states, x_without: [...settings.omissions], x_dialect: name },
      ...(typeof limit === 'number' && !settings.omissions.has('limit') && { outputTokensMax: limit }),
    };
  },
  Reader: StatefulReader,
});

class StatefulReader implements AnswerReader {
  readonly #reader: AnswerReader;
  readonly #parts: StatePart[] = [];

  constructor(context: ReaderContext) {
    this.#reader = new chat.Reader(context);
  }

  get done(): boolean {
    return this.#reader.done;
  }

  get finishedChoices(): number {
    return this.#reader.finishedChoices;
  }

  report(): AnswerReport {
    return { ...this.#reader.report(), state: this.#parts.length > 0 ? this.#parts : undefined };
  }

  push(event: UpstreamEvent): ChatChunk[] {
    const value = event.kind === 'value' ? asRecord(event.value) : {};
    const { x_mark: opaque, x_error: error } = value;
    if (error !== undefined) throw new ErrorInAnswer(asRecord(error));
    if (opaque !== undefined) this.#parts.push({ opaque: asRecord(opaque) }, { call: 0 });
    return this.#reader.push(event);
  }

  end(): ChatChunk[] {
    return this.#reader.end();
  }
}

const dialects = {
  chat: stateful('chat', '/chat/completions'),
  responses: stateful('responses', '/responses'),
};

/** Replaces the registry of dialects. */
export const statefulRegistry = {
  outputTokensMin: () => 1,
  dialectNames: Object.keys(dialects),
  ownDialectNames: [],
  hasOwnDialect: () => false,
  defaultDialect: 'chat',
  loadDialect: async (name: keyof typeof dialects) => dialects[name],
  dialectPathOf: (name: keyof typeof dialects) => dialects[name]?.path,
  dialectPaths: Object.values(dialects).map(({ path }) => path),
};

/** A tool call, with state if a mark is given. */
export const calling = (id: string, mark?: object): Step[] => [
  data({
    choices: [
      {
        index: 0,
        delta: { tool_calls: [{ index: 0, id, function: { name: 'look', arguments: '{}' } }] },
      },
    ],
    ...(mark && { x_mark: mark }),
  }),
  data({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
  done,
];
