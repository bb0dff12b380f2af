import type { ChatChunk, ChatDelta, ChatUsage } from '../../../shared/wire/chat-response.ts';
import type { SentFacts } from '../../../shared/endpoints/endpoint.ts';

/** A step of an answer: a delta with its turn state and log probabilities. */
export interface ChunkStep {
  delta: ChatDelta;
  logprobs?: object;
  /** The number of opaque state parts from this chunk on. */
  opaqueParts?: number;
}

/** An answer as canonical chunks, and the client's request. */
export interface ChunkCase {
  request?: object;
  steps: ChunkStep[];
  finish?: 'stop' | 'length' | 'tool_calls';
  usage?: ChatUsage;
  sent?: SentFacts;
  /** The minimum length of each seal. */
  sealLength?: number;
}

const text = (content: string): ChunkStep => ({ delta: { content } });
const think = (words: string, opaqueParts = 0): ChunkStep => ({
  delta: { reasoning_content: words },
  opaqueParts,
});
const call = (index: number, name: string, more = ''): ChunkStep => ({
  delta: {
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: more } }],
  },
});
const args = (index: number, more: string): ChunkStep => ({
  delta: { tool_calls: [{ index, function: { arguments: more } }] },
});
const custom = (index: number, name: string, input: string): ChunkStep => ({
  delta: { tool_calls: [{ index, id: `call_${index}`, type: 'custom', custom: { name, input } }] },
});
const input = (index: number, more: string): ChunkStep => ({
  delta: { tool_calls: [{ index, custom: { input: more } }] },
});
const cite = (title: string): ChunkStep => ({
  delta: {
    annotations: [
      {
        type: 'url_citation',
        url_citation: { url: 'https://a.example/', title, start_index: 0, end_index: 4 },
      },
    ],
  },
});
const filed: ChunkStep = {
  delta: {
    annotations: [
      { type: 'file_citation', file_id: 'file_1', filename: 'a.pdf', index: 3 },
      { type: 'file_path', file_id: 'file_2', index: 0 },
      {
        type: 'container_file_citation',
        container_id: 'cntr_1',
        file_id: 'cfile_1',
        filename: 'plot.png',
        start_index: 0,
        end_index: 9,
      },
    ],
  },
};
const logprob = (token: string): object => ({
  token,
  logprob: -0.5,
  bytes: [104],
  top_logprobs: [{ token, logprob: -0.5, bytes: null }],
});

const look = { type: 'function', name: 'look', parameters: { type: 'object' }, strict: false };
const patch = { type: 'custom', name: 'apply_patch', description: 'Edits files.' };
const files = { type: 'namespace', name: 'fs', tools: [{ type: 'custom', name: 'edit' }] };
const tools = [look, patch, files];
const sealed = { include: ['reasoning.encrypted_content'] };
const summed = { reasoning: { effort: 'high', summary: 'auto' } };

export const chunkCases: Record<string, ChunkCase> = {
  'custom-tool': {
    request: { tools },
    steps: [custom(0, 'apply_patch', ''), input(0, '*** Begin'), input(0, ' Patch\n')],
    finish: 'tool_calls',
  },
  'custom-then-function': {
    request: { tools },
    steps: [custom(0, 'fs__edit', 'a'), call(1, 'look', '{"at":'), input(0, 'b'), args(1, '1'), args(1, '}')],
    finish: 'tool_calls',
  },
  'braces-in-arguments': {
    request: { tools },
    steps: [
      call(0, 'look', '{"a":"}\\'),
      text('So. '),
      args(0, '"}","b":[{}]'),
      text('Done.'),
      args(0, '}'),
      call(1, 'look', '{}'),
    ],
    finish: 'tool_calls',
  },
  'text-and-refusal': {
    steps: [text('Well. '), { delta: { refusal: 'I cannot' } }, { delta: { refusal: '.' } }],
  },
  annotations: { steps: [cite('early'), text('It is'), cite('A'), text(' so.'), cite('B')] },
  'annotations-of-files': { steps: [text('It is so.'), filed] },
  logprobs: {
    request: { top_logprobs: 1, include: ['message.output_text.logprobs'] },
    steps: [
      { delta: { content: 'h' }, logprobs: { content: [logprob('h')], refusal: null } },
      { delta: { content: 'i' }, logprobs: { content: [logprob('i')], refusal: null } },
    ],
  },
  'logprobs-not-asked': {
    steps: [{ delta: { content: 'h' }, logprobs: { content: [logprob('h')], refusal: null } }],
  },
  'phases-of-the-upstream': {
    steps: [
      { delta: { phase: 'commentary' } },
      text('I look.'),
      { delta: { phase: 'final_answer', content: 'It is' } },
      text(' so.'),
    ],
  },
  'summary-and-seal': {
    request: { ...summed, ...sealed, tools },
    steps: [think('Hm. '), think('So.', 1), text('I look.'), call(0, 'look', '{}')],
    finish: 'tool_calls',
  },
  'seal-that-grows': {
    request: { ...summed, ...sealed, tools },
    steps: [think('Hm.', 1), call(0, 'look', '{}'), { ...call(1, 'look', '{}'), opaqueParts: 2 }],
    finish: 'tool_calls',
  },
  'seal-alone': { request: { ...sealed }, steps: [think('Hm.', 1), text('4')] },
  'seal-without-any': { request: { ...sealed }, steps: [think('Hm.'), text('4')] },
  'summary-alone': { request: { ...summed }, steps: [think('Hm.', 1), text('4')] },
  'thinking-between': {
    request: { ...summed, tools },
    steps: [think('One.'), call(0, 'look', '{}'), think('Two.'), text('4')],
  },
  'cached-tokens': {
    steps: [text('4')],
    usage: {
      prompt_tokens: 90,
      completion_tokens: 7,
      total_tokens: 97,
      prompt_tokens_details: { cached_tokens: 50, cache_write_tokens: 20, cache_write_1h_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 3 },
    },
  },
  'not-in-force': {
    request: {
      temperature: 0.5,
      top_p: 0.5,
      metadata: { a: 'b' },
      prompt_cache_key: 'k',
      safety_identifier: 's',
      service_tier: 'priority',
      top_logprobs: 3,
      truncation: 'auto',
      max_tool_calls: 4,
      reasoning: { effort: 'xhigh' },
      text: { verbosity: 'low' },
    },
    steps: [text('4')],
    sent: {
      dropped: [
        'temperature',
        'metadata',
        'prompt_cache_key',
        'safety_identifier',
        'logprobs',
        'truncation',
        'max_tool_calls',
        'verbosity',
      ],
      effort: 'high',
      serviceTier: 'flex',
    },
  },
  'length-in-parallel-calls': {
    request: { tools },
    steps: [call(0, 'look', '{"at":1'), call(1, 'look', '{"at":2}'), args(0, '}'), call(2, 'look', '{"a')],
    finish: 'length',
  },
};

const chunk = { id: 'chatcmpl-r1', object: 'chat.completion.chunk', created: 5, model: 'm' } as const;

/** Yields the canonical chunks of a case. Calls `said` with each step before its chunk. */
export function* chunksOf(one: ChunkCase, said: (step: ChunkStep) => void): Generator<ChatChunk> {
  for (const step of one.steps) {
    said(step);
    const choice = { index: 0, delta: step.delta, logprobs: step.logprobs ?? null, finish_reason: null };
    yield { ...chunk, choices: [choice], usage: null };
  }
  const last = { index: 0, delta: {}, logprobs: null, finish_reason: one.finish ?? ('stop' as const) };
  yield { ...chunk, choices: [last], usage: null };
  const usage = one.usage ?? { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  yield { ...chunk, choices: [], usage };
}
