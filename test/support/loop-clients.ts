import { asRecord } from '../../shared/wire/json.ts';
import { frames, type Answer, type CoreRig } from './core-rig.ts';

type Json = Record<string, unknown>;

/** How a client works: the endpoint that it calls, and the parts of its turns that it sends back. */
export interface LoopClient {
  kind: string;
  path: string;
  /** The body of a request with this conversation. `answered`: its part up to the last answer, with that answer's id. */
  body(conversation: readonly Json[], answered?: Answered): Json;
  /** The answer's turn, its calls, its text. */
  read(answer: Answer, stream: boolean): ReadTurn;
  question(text: string): Json;
  result(callId: string, text: string): Json;
}

export interface Answered {
  id: string;
  items: number;
}

export interface ReadTurn {
  /** The id of the answer, if clients refer to it. */
  id?: string;
  /** The turn as the client adds it to the conversation. */
  turn: Json[];
  calls: { id: string; name: string; input: unknown }[];
  text: string;
}

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const system = 'Be brief. '.repeat(40);

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(asRecord) : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A streamed message, its pieces joined as clients join them. */
function folded(answer: Answer): Json {
  const message: Json = { role: 'assistant', content: null };
  const calls: Json[] = [];
  for (const frame of frames(answer.text)) {
    const [choice] = listOf(asRecord(frame)['choices']);
    const delta = asRecord(choice?.['delta']);
    for (const field of ['content', 'reasoning_content'])
      if (typeof delta[field] === 'string') message[field] = textOf(message[field]) + delta[field];
    if (Array.isArray(delta['reasoning_details']))
      message['reasoning_details'] = [
        ...listOf(message['reasoning_details']),
        ...listOf(delta['reasoning_details']),
      ];
    for (const { index, ...piece } of listOf(delta['tool_calls'])) {
      const call = (calls[Number(index)] ??= {});
      const { name, arguments: text } = asRecord(piece['function']);
      const known = asRecord(call['function']);
      calls[Number(index)] = {
        ...call,
        ...piece,
        function: { name: known['name'] ?? name, arguments: textOf(known['arguments']) + textOf(text) },
      };
    }
  }
  return calls.length > 0 ? { ...message, tool_calls: calls } : message;
}

const standard = ({ role, content, tool_calls: calls }: Json): Json => ({
  role,
  content,
  ...(Array.isArray(calls) && {
    tool_calls: listOf(calls).map(({ id, function: called }) => {
      const { name, arguments: text } = asRecord(called);
      return { id, type: 'function', function: { name, arguments: text } };
    }),
  }),
});

const chatClient = (kind: string, sentBack: (message: Json) => Json): LoopClient => ({
  kind,
  path: '/v1/chat/completions',
  question: (content) => ({ role: 'user', content }),
  result: (id, content) => ({ role: 'tool', tool_call_id: id, content }),
  body: (conversation) => ({
    model: 'm',
    messages: [{ role: 'system', content: system }, ...conversation],
    tools: [
      { type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters } },
    ],
  }),
  read(answer, stream) {
    const message = stream
      ? folded(answer)
      : asRecord(listOf(asRecord(JSON.parse(answer.text))['choices'])[0]?.['message']);
    const calls = listOf(message['tool_calls']).map(({ id, function: called }) => {
      const { name, arguments: text } = asRecord(called);
      return { id: textOf(id), name: textOf(name), input: JSON.parse(textOf(text)) as unknown };
    });
    return { turn: [sentBack(message)], calls, text: textOf(message['content']) };
  },
});

const responsesClient = (kind: string, more: Json, sentBack = (item: Json): Json => item): LoopClient => ({
  kind,
  path: '/v1/responses',
  question: (content) => ({ role: 'user', content }),
  result: (id, output) => ({ type: 'function_call_output', call_id: id, output }),
  body: (input) => ({
    model: 'm',
    instructions: system,
    input: [...input],
    tools: [
      { type: 'function', name: 'weather', description: 'Weather of a city', parameters, strict: true },
    ],
    store: false,
    ...more,
  }),
  read(answer, stream) {
    const response = stream
      ? asRecord(asRecord(frames(answer.text.replaceAll(/^event: .*\n/gm, '')).at(-1))['response'])
      : asRecord(JSON.parse(answer.text));
    const output = listOf(response['output']);
    const calls = output
      .filter(({ type }) => type === 'function_call')
      .map(({ call_id: id, name, arguments: text }) => ({
        id: textOf(id),
        name: textOf(name),
        input: JSON.parse(textOf(text)) as unknown,
      }));
    const texts = output.flatMap(({ content }) => listOf(content)).map(({ text }) => textOf(text));
    return { id: textOf(response['id']), turn: output.map(sentBack), calls, text: texts.join('') };
  },
});

/** The message of a stream of Messages, joined as the SDK joins it. */
function messageOf(answer: Answer): Json {
  const content: Json[] = [];
  const inputs: string[] = [];
  for (const event of frames(answer.text.replaceAll(/^event: .*\n/gm, '')).map(asRecord)) {
    const at = Number(event['index']);
    if (event['type'] === 'content_block_start') content[at] = asRecord(event['content_block']);
    const { type, ...pieces } = asRecord(event['delta']);
    if (event['type'] !== 'content_block_delta') continue;
    if (type === 'input_json_delta') inputs[at] = (inputs[at] ?? '') + textOf(pieces['partial_json']);
    else
      for (const [field, piece] of Object.entries(pieces))
        content[at] = { ...content[at], [field]: textOf(content[at]?.[field]) + textOf(piece) };
  }
  return {
    content: content.map((block, at) =>
      block['type'] === 'tool_use'
        ? Object.assign({}, block, { input: JSON.parse(inputs[at] ?? '{}') })
        : block,
    ),
  };
}

/** Puts the results of parallel calls into one turn. */
function joinedTurns(conversation: readonly Json[]): Json[] {
  const turns: Json[] = [];
  for (const turn of conversation) {
    const last = turns.at(-1);
    if (last?.['role'] === turn['role'])
      turns.splice(-1, 1, { ...last, content: [...listOf(last?.['content']), ...listOf(turn['content'])] });
    else turns.push(turn);
  }
  return turns;
}

const messagesClient = (kind: string, more: Json): LoopClient => ({
  kind,
  path: '/v1/messages',
  question: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
  result: (id, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] }),
  body: (conversation) => ({
    model: 'm',
    max_tokens: 8_000,
    system,
    messages: joinedTurns(conversation),
    tools: [{ name: 'weather', description: 'Weather of a city', input_schema: parameters }],
    ...more,
  }),
  read(answer, stream) {
    const content = listOf((stream ? messageOf(answer) : asRecord(JSON.parse(answer.text)))['content']);
    const calls = content
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, name, input }) => ({ id: textOf(id), name: textOf(name), input }));
    const texts = content.filter(({ type }) => type === 'text').map(({ text }) => textOf(text));
    return { turn: [{ role: 'assistant', content }], calls, text: texts.join('') };
  },
});

const include = ['reasoning.encrypted_content'];
const withoutId = ({ id: _id, ...item }: Json): Json => item;

export const loopClients: LoopClient[] = [
  chatClient('a chat client that sends back standard fields', standard),
  chatClient('a chat client that sends back whole messages', (message) => message),
  responsesClient('a Responses client that keeps encrypted reasoning', { include }),
  responsesClient('a Responses client that leaves ids out', { include }, withoutId),
  responsesClient('a Responses client without include', {}),
  responsesClient('a Responses client that shows summaries', { include, reasoning: { summary: 'auto' } }),
  messagesClient('a Messages client', {}),
  messagesClient('a Messages client that thinks', { thinking: { type: 'adaptive' } }),
];

const referring = responsesClient('a Responses client that refers to items', { store: true }, ({ id }) => ({
  type: 'item_reference',
  id,
}));

/** Clients of keys that may store, so the relay holds their conversations. */
export const storingClients: LoopClient[] = [
  {
    ...referring,
    kind: 'a Responses client that goes on from the last response',
    body: (conversation, answered) => ({
      ...referring.body(conversation.slice(answered?.items)),
      ...(answered && { previous_response_id: answered.id }),
    }),
  },
  referring,
];

export function clientNamed(kind: string): LoopClient {
  const found = [...loopClients, ...storingClients].find((client) => client.kind === kind);
  if (!found) throw new Error(kind);
  return found;
}

/** One conversation, turn by turn. */
export class Conversation {
  readonly client: LoopClient;
  readonly stream: boolean;
  readonly items: Json[] = [];
  readonly ids: string[] = [];
  /** The tool results since the last question. */
  results: string[] = [];
  #posts = 0;
  #answered: Answered | undefined;

  constructor(client: LoopClient, stream: boolean) {
    this.client = client;
    this.stream = stream;
  }

  /** The client keeps encrypted reasoning. */
  get keepsState(): boolean {
    const body = this.client.body([]);
    return 'include' in body || 'thinking' in body;
  }

  ask(text: string): this {
    this.items.push(this.client.question(text));
    this.results = [];
    return this;
  }

  post(rig: CoreRig, more: Json = {}): Promise<Answer> {
    const { client, stream } = this;
    // Ids derived from the request's id must differ between turns.
    const id = `01loop${String((this.#posts += 1)).padStart(20, '0')}`;
    return rig.post(
      { ...client.body(this.items, this.#answered), stream, ...more },
      { path: client.path, id },
    );
  }

  /** Adds the answer and the results of its calls to the conversation. */
  take(answer: Answer): ReadTurn {
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
    const read = this.client.read(answer, this.stream);
    this.items.push(...read.turn);
    if (read.id !== undefined) this.#answered = { id: read.id, items: this.items.length };
    for (const { id } of read.calls) {
      const result = `sunny ${this.ids.length}`;
      this.items.push(this.client.result(id, result));
      this.ids.push(id);
      this.results.push(result);
    }
    return read;
  }

  /** Runs turns until one has no calls. */
  async run(rig: CoreRig, more: Json = {}): Promise<{ text: string; turns: number; answers: Answer[] }> {
    const answers: Answer[] = [];
    for (let turns = 0; turns < 24; turns += 1) {
      const answer = await this.post(rig, more);
      answers.push(answer);
      const { calls, text } = this.take(answer);
      if (calls.length === 0) return { text, turns, answers };
    }
    throw new Error('the loop does not end');
  }
}
