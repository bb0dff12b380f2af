/**
 * Recorded answers of vendors, read through the relay by both endpoints, streamed and whole. The vendors' own SDKs are the
 * oracle, twice: what they read from the vendor's bytes, they read from the relay's. Besides the transcripts of this folder
 * it reads recordings that are on this machine: `RELAY_CORPUS` names a folder with `*.json` (an answer) and `*.chunks.txt`
 * (the data of a stream's events, one a line), such as the `__fixtures__` of vercel/ai (Apache-2.0).
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { asRecord, isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import { CoreRig } from '../support/core-rig.ts';

type Kind = 'chat' | 'responses' | 'messages';

interface Recording {
  name: string;
  kind: Kind;
  streamed: boolean;
  body: string;
}

/** The answer as a user of a vendor's SDK sees it. */
interface Seen {
  text: string;
  reasoning: string;
  calls: string[];
  finish: string;
  /** All input and output tokens. Undefined when the SDK reports none. */
  usage: [input: number, output: number] | undefined;
}

const records = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.filter(isRecord) : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function kindOf({ object, type, choices, output }: JsonRecord): Kind | undefined {
  if (type === 'message' || type === 'message_start') return 'messages';
  if (object === 'response' || Array.isArray(output) || textOf(type).startsWith('response.'))
    return 'responses';
  return Array.isArray(choices) ? 'chat' : undefined;
}

function recordingOf(file: string, name: string): Recording[] {
  const body = readFileSync(file, 'utf8');
  const lines = body.split('\n').filter((line) => line.trim() !== '');
  const streamed = !name.endsWith('.json') && !body.startsWith('{"id') && lines.length > 1;
  const data = lines.map((line) => line.replace(/^data: ?/, '')).filter((line) => line.startsWith('{'));
  try {
    const first = asRecord(JSON.parse(streamed ? (data[0] ?? '') : body));
    const kind = kindOf(first);
    if (!kind) return [];
    if (!name.endsWith('.chunks.txt')) return [{ name, kind, streamed, body }];
    const frames = data.map(
      (line) => `event: ${textOf(asRecord(JSON.parse(line))['type'])}\ndata: ${line}\n\n`,
    );
    const end = kind === 'chat' ? 'data: [DONE]\n\n' : '';
    return [{ name, kind, streamed: true, body: frames.join('').replaceAll('event: \n', '') + end }];
  } catch {
    return [];
  }
}

const filesIn = (folder: string, ending: RegExp): Recording[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .toSorted()
    .flatMap((name) => recordingOf(path.join(folder, name), name));

const corpus = process.env['RELAY_CORPUS'];
const recordings = [
  ...filesIn(path.join(import.meta.dirname, 'upstream'), /\.txt$/),
  ...(corpus === undefined ? [] : filesIn(corpus, /\.(json|chunks\.txt)$/)),
];

const messages = [{ role: 'user' as const, content: 'hi' }];

/** Throws the SDK's errors. */
async function seen({ kind, streamed, body }: Recording): Promise<Seen> {
  const fetch = (): Promise<Response> => {
    const headers = { 'content-type': streamed ? 'text/event-stream' : 'application/json' };
    return Promise.resolve(new Response(body, { headers }));
  };
  const settings = { apiKey: 'k', baseURL: 'https://vendor.test', maxRetries: 0, fetch };
  if (kind === 'messages') {
    const client = new Anthropic(settings);
    const asked = { model: 'm', max_tokens: 9, messages };
    return ofMessage(
      await (streamed ? client.messages.stream(asked).finalMessage() : client.messages.create(asked)),
    );
  }
  const client = new OpenAI(settings);
  if (kind === 'responses') {
    const asked = { model: 'm', input: 'hi' };
    return ofResponse(
      await (streamed ? client.responses.stream(asked).finalResponse() : client.responses.create(asked)),
    );
  }
  if (!streamed) return ofCompletion(await client.chat.completions.create({ model: 'm', messages }));
  const stream = client.chat.completions.stream({ model: 'm', messages });
  let reasoning = '';
  let typed = '';
  // The SDK keeps only the last piece of unknown fields, and does not join Mistral's parts.
  stream.on('chunk', ({ choices }) => {
    const delta = asRecord(choices[0]?.delta);
    reasoning +=
      textOf(delta['reasoning_content']) || textOf(delta['reasoning']) || thoughtIn(delta['content']);
    typed += Array.isArray(delta['content']) ? saidIn(delta['content']) : textOf(delta['content']);
  });
  const last = ofCompletion(await stream.finalChatCompletion());
  return { ...last, reasoning, text: last.text.includes('[object Object]') ? typed : last.text };
}

const saidIn = (content: unknown): string =>
  records(content)
    .map(({ text }) => textOf(text))
    .join('');
const thoughtIn = (content: unknown): string =>
  records(content)
    .map(({ thinking }) => saidIn(thinking))
    .join('');

/** Parses arguments as JSON, so whitespace does not matter; the input of custom tools is text. */
function call({ name, arguments: json, input }: JsonRecord): string {
  const value: unknown = typeof json === 'string' ? JSON.parse(json || '{}') : (json ?? input ?? {});
  return `${textOf(name)} ${JSON.stringify(value)}`;
}

function ofCompletion({ choices, usage }: OpenAI.ChatCompletion): Seen {
  const [choice] = choices;
  const message: JsonRecord = { ...choice?.message };
  const { content, reasoning_content: named, reasoning, function_call: legacy } = message;
  const called = records(message['tool_calls']).map((each) => asRecord(each['custom'] ?? each['function']));
  return {
    text: textOf(content) || saidIn(content),
    reasoning: textOf(named) || textOf(reasoning) || thoughtIn(content),
    // Snowflake sends an empty call beside its texts.
    calls: (isRecord(legacy) && legacy['name'] ? [legacy] : called.filter(({ name }) => name)).map(call),
    finish: choice?.finish_reason === 'function_call' ? 'tool_calls' : (choice?.finish_reason ?? ''),
    // xAI and others count reasoning only in the total.
    usage: usage && [
      usage.prompt_tokens,
      Math.max(usage.completion_tokens, usage.total_tokens - usage.prompt_tokens),
    ],
  };
}

function ofResponse({ output, status, incomplete_details: why, usage }: OpenAI.Responses.Response): Seen {
  if (status !== 'completed' && status !== 'incomplete') throw new Error(`no whole answer: ${status}`);
  const items = records(output);
  const inside = (item: JsonRecord, list: string): string =>
    records(item[list])
      .map(({ text }) => textOf(text))
      .join('\n\n');
  const called = items.filter(({ type }) => type === 'function_call' || type === 'custom_tool_call');
  const cut = why?.reason === 'content_filter' ? 'content_filter' : 'length';
  return {
    text: items
      .filter(({ type }) => type === 'message')
      .flatMap(({ content }) => records(content).map(({ text }) => textOf(text)))
      .join(''),
    reasoning: items
      .filter(({ type }) => type === 'reasoning')
      .map((item) => inside(item, 'summary') || inside(item, 'content'))
      .filter((text) => text !== '')
      .join('\n\n'),
    calls: called.map(call),
    finish: status === 'incomplete' ? cut : called.length > 0 ? 'tool_calls' : 'stop',
    usage: usage ? [usage.input_tokens, usage.output_tokens] : undefined,
  };
}

const reasons: Record<string, string> = {
  max_tokens: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

function ofMessage({ content, stop_reason: reason, usage }: Anthropic.Message): Seen {
  const blocks = records(content);
  const called = blocks.filter(({ type }) => type === 'tool_use');
  const finish = reasons[reason ?? ''] ?? 'stop';
  const { input_tokens: plain, cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const of = (type: string, field: string): string =>
    blocks.flatMap((block) => (block['type'] === type ? textOf(block[field]) : [])).join('');
  return {
    text: of('text', 'text'),
    reasoning: of('thinking', 'thinking'),
    calls: called.map(call),
    // OpenAI clients act on this reason when there are calls.
    finish: finish === 'stop' && called.length > 0 ? 'tool_calls' : finish,
    usage: [plain + (read ?? 0) + (written ?? 0), usage.output_tokens],
  };
}

/** The relayed answer as the same SDK sees it. Undefined when the endpoint has no form for it and rejects it. */
async function relayed(
  { kind, body, name }: Recording,
  { to, streamed }: (typeof modes)[number],
): Promise<Seen | undefined> {
  const rig = new CoreRig({ channels: [{ dialect: kind }] }).upstream({ steps: [body] });
  const asked = to === 'chat' ? { messages } : { input: 'hi', reasoning: { summary: 'auto' } };
  const path = to === 'chat' ? '/v1/chat/completions' : '/v1/responses';
  const { status, text } = await rig.post({ model: 'm', stream: streamed, ...asked }, { path });
  if (text.includes('"unsupported_output"')) return undefined;
  expect([status, rig.faults, status === 200 ? '' : text]).toEqual([200, [], '']);
  const line = rig.logged.at(-1);
  // The prompt is not the recorded one, so its count may be implausible and is then estimated.
  const usage: Seen['usage'] = [
    line?.reported_input ?? line?.prompt_tokens ?? NaN,
    line?.reported_output ?? line?.completion_tokens ?? NaN,
  ];
  return { ...(await seen({ name, kind: to, streamed, body: text })), usage };
}

const modes = (['chat', 'responses'] as const).flatMap((to) =>
  [true, false].map((streamed) => ({ to, streamed })),
);

/** Recordings that contradict themselves, and answers that an endpoint can't show completely. */
const beside = [
  'chat/two-choices.txt',
  // Has no content and no finish reason: the relay asks another candidate.
  'chat/json-nothing-said.txt',
  // Starts with content that its events then repeat.
  'messages/message-start-with-blocks-again.txt',
  // Has content after its usage.
  'messages/text-with-ping.txt',
  // The text of the last events differs from the pieces before them.
  'openai-shell-container.1.chunks.txt',
];

const asked = recordings.filter(({ name }) => !beside.some((one) => name.endsWith(one)));
/** Cut, failed and unreadable answers are tested with their dialects. */
const read = await Promise.all(asked.map((recording) => seen(recording).catch(() => undefined)));
const cases = asked.flatMap((recording, index) => {
  const expected = read[index];
  return expected ? [{ name: recording.name.split('/').slice(-2).join('/'), recording, expected }] : [];
});

describe("an SDK user's view of a relayed answer", () => {
  it('is known for most recordings', () => {
    expect(cases.length).toBeGreaterThan(asked.length * 0.6);
  });

  it.each(cases)("equals the view of the vendor's own answer: $name", async ({ recording, expected }) => {
    // An answer with `iterations` has several runs, and the SDK counts only the last.
    const counted = expected.usage && !recording.body.includes('"iterations"');
    const got = await Promise.all(
      modes.map(async (mode) => ({ mode, seen: await relayed(recording, mode) })),
    );
    const shown = got.flatMap(({ mode, seen: one }) => (one ? [{ mode, ...one }] : []));
    // Without a finish reason, the content decides.
    const finish = expected.finish || (expected.calls.length > 0 ? 'tool_calls' : 'stop');
    const wanted = shown.map(({ mode, usage }) => ({
      mode,
      ...expected,
      finish,
      ...(!counted && { usage }),
    }));
    expect(shown).toEqual(wanted);
  });
});
