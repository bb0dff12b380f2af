import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { chatEndpoint } from '../../../shared/endpoints/chat/chat-endpoint.ts';
import { answerFacts } from '../../support/answer-facts.ts';
import { frames as framesOf } from '../../support/core-rig.ts';
import type { ChatChunk, ChatDelta } from '../../../shared/wire/chat-response.ts';

const someChunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.unknown() })),
  usage: z.unknown(),
});
/** The chunks of a stream, without its end mark. */
const chunksIn = (text: string) => z.array(someChunk).parse(framesOf(text).slice(0, -1));

const hi = { role: 'user', content: 'hi' };
const read = (more: object) => chatEndpoint.read({ model: 'm', messages: [hi], ...more }, {});
const requestOf = (more: object) => read(more).call.request;
const look = { name: 'look', description: 'Looks.', parameters: { type: 'object' } };

const tool = { type: 'function', function: look };
const called = (name: string) => ({
  role: 'assistant',
  content: null,
  function_call: { name, arguments: '{}' },
});
const result = (name: string, content: string) => ({ role: 'function', name, content });
const toolCall = (i: number, name: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: `call_function_${i}`, type: 'function', function: { name, arguments: '{}' } }],
});
const toolResult = (i: number, content: string) => ({
  role: 'tool',
  tool_call_id: `call_function_${i}`,
  content,
});
const bare = { role: 'assistant', content: 'ho', function_call: null, tool_calls: null };

describe('the legacy functions of a request', () => {
  it.each<[unknown, unknown]>([
    ['none', 'none'],
    ['auto', 'auto'],
    [{ name: 'look' }, { type: 'function', function: { name: 'look' } }],
    [null, undefined],
  ])(
    'become tools for every dialect, and function_call %j becomes the tool choice %j',
    (choice, expected) => {
      const request = {
        model: 'm',
        messages: [hi],
        tools: [tool],
        ...(expected !== undefined && { tool_choice: expected }),
      };
      const { call } = read({ functions: [look], function_call: choice });
      expect(call).toEqual({ form: 'chat', request, unknown: {} });
    },
  );

  it.each([
    [{ functions: [look], function_call: 'odd' }, 'function_call'],
    [{ functions: [look], tools: [tool] }, 'functions'],
    [{ functions: [{}] }, 'functions[0].name'],
  ])('%j is rejected with the invalid field', (more, param) => {
    expect(() => read(more)).toThrow(expect.objectContaining({ name: 'InvalidRequest', param }));
  });

  it.each<[string, object[], object[]]>([
    [
      'calls and results in messages become tool calls and tool messages, each result with its call',
      [called('a'), result('a', '1'), called('b'), result('b', '2'), called('a')],
      [toolCall(1, 'a'), toolResult(1, '1'), toolCall(3, 'b'), toolResult(3, '2'), toolCall(5, 'a')],
    ],
    ['a result without a call stays as it is', [result('look', 'x')], [result('look', 'x')]],
    ['a null function_call, as clients send it back, changes nothing', [bare], [bare]],
  ])('%s', (_name, messages, expected) => {
    expect(requestOf({ messages: [hi, ...messages] }).messages).toEqual([hi, ...expected]);
  });
});

const base = { id: 'chatcmpl-r1', object: 'chat.completion.chunk', created: 5, model: 'm' } as const;
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const piece = (index: number, more: object): ChatDelta => ({ tool_calls: [{ index, ...more }] });

function chunks(deltas: ChatDelta[], finish: 'stop' | 'tool_calls' = 'tool_calls'): ChatChunk[] {
  const choice = (delta: ChatDelta) => ({ index: 0, delta, logprobs: null, finish_reason: null });
  return [
    ...deltas.map((delta) => ({ ...base, choices: [choice(delta)], usage: null })),
    { ...base, choices: [{ ...choice({}), finish_reason: finish }], usage: null },
    { ...base, choices: [], usage },
  ];
}

interface Rendering {
  headers?: Record<string, string>;
  finish?: 'stop';
}

function rendered(body: object, deltas: ChatDelta[], { headers = {}, finish }: Rendering = {}): string {
  const asked = chatEndpoint.read({ model: 'm', messages: [hi], ...body }, headers);
  const renderer = asked.renderer({ requestId: 'r1', created: 5, model: 'm' }, answerFacts());
  const texts = chunks(deltas, finish).flatMap((chunk) => renderer.push(chunk));
  return [...texts, ...renderer.end()].flat().join('');
}

const pieces = [
  piece(0, { id: 'c0', type: 'function', function: { name: 'look', arguments: '' } }),
  piece(0, { function: { arguments: '{"at":' } }),
  piece(1, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }),
  piece(0, { function: { arguments: '1}' } }),
];

describe('the answer to a request with legacy functions', () => {
  it('has function_call and its finish reason in a stream', () => {
    const all = chunksIn(rendered({ functions: [look], stream: true }, pieces));
    const choices = all.flatMap((chunk) => chunk.choices);
    expect(choices).toMatchObject([
      { delta: { function_call: { name: 'look', arguments: '' } }, finish_reason: null },
      { delta: { function_call: { arguments: '{"at":' } } },
      { delta: {} },
      { delta: { function_call: { arguments: '1}' } } },
      { delta: {}, finish_reason: 'function_call' },
    ]);
    expect(JSON.stringify(choices)).not.toContain('tool_calls');
  });

  it('has function_call and its finish reason as one object', () => {
    expect(JSON.parse(rendered({ function_call: 'auto', functions: [look] }, pieces))).toMatchObject({
      choices: [
        {
          message: { tool_calls: null, function_call: { name: 'look', arguments: '{"at":1}' } },
          finish_reason: 'function_call',
        },
      ],
    });
  });

  it('uses tool calls if the request used them too', () => {
    expect(JSON.parse(rendered({ tools: [tool] }, pieces))).toMatchObject({
      choices: [{ message: { tool_calls: [{}, {}] }, finish_reason: 'tool_calls' }],
    });
  });
});

describe('the content of a chat answer', () => {
  const citation = {
    type: 'url_citation' as const,
    url_citation: { url: 'u', title: 't', start_index: 0, end_index: 1 },
  };
  const ofFile = { type: 'file_path' as const, file_id: 'f', index: 0 };
  const details = [
    { type: 'reasoning.text', index: 0, text: 'Hm', signature: null },
    { type: 'reasoning.text', index: 0, text: '.' },
    { type: 'reasoning.text', index: 0, text: '', signature: 'sig' },
    { type: 'reasoning.encrypted', index: 1, data: 'a' },
    { type: 'reasoning.encrypted', index: 1, data: 'b' },
  ];
  const deltas: ChatDelta[] = [
    { role: 'assistant', phase: 'final_answer', content: 'x' },
    ...details.map((detail) => ({ reasoning_details: [detail] })),
    { annotations: [ofFile, citation, ofFile] },
    { annotations: [ofFile] },
    { images: [{ type: 'image_url' }] },
    piece(0, { id: 'c0', type: 'custom', custom: { name: 'patch', input: '*' } }),
    piece(0, { custom: { input: '**' } }),
    piece(0, { extra_content: { google: { thought_signature: 's' } } }),
  ];

  it('is complete in one object: custom calls, state, annotations, images', () => {
    const { choices } = JSON.parse(rendered({}, deltas));
    expect(choices[0].message).toEqual({
      role: 'assistant',
      content: 'x',
      refusal: null,
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'Hm.', signature: 'sig' },
        { type: 'reasoning.encrypted', index: 1, data: 'a' },
        { type: 'reasoning.encrypted', index: 1, data: 'b' },
      ],
      annotations: [citation],
      images: [{ type: 'image_url' }],
      tool_calls: [
        {
          index: 0,
          id: 'c0',
          type: 'custom',
          custom: { name: 'patch', input: '***' },
          extra_content: { google: { thought_signature: 's' } },
        },
      ],
    });
  });

  it('is streamed as it arrives, without Responses-only values: phases and annotations of files', () => {
    const streamed = chunksIn(rendered({ stream: true }, deltas)).flatMap((chunk) => chunk.choices);
    const { phase: _phase, ...first } = deltas[0] ?? {};
    const plain = deltas.slice(1).map((delta) => {
      if (!delta.annotations) return delta;
      return delta.annotations.includes(citation) ? { annotations: [citation] } : {};
    });
    expect(streamed.map(({ delta }) => delta)).toEqual([first, ...plain, {}]);
  });
});

describe('the usage of a chat answer', () => {
  const whole = {
    ...usage,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
  const asked = { stream_options: { include_usage: true } };
  const java = { 'x-stainless-lang': 'java' };

  it.each<[string, object, Record<string, string>, unknown[]]>([
    ['on the finish chunk', {}, {}, [null, whole]],
    ['in a separate chunk on request', asked, {}, [null, null, whole]],
    ["nowhere for OpenAI's client for Java, which would miss the finish reason", {}, java, [null, null]],
    ['where that client requests usage', asked, java, [null, null, whole]],
  ])('is reported %s', (_where, body, headers, expected) => {
    const text = rendered({ ...body, stream: true }, [{ content: 'x' }], { headers, finish: 'stop' });
    expect(chunksIn(text).map((chunk) => chunk.usage)).toEqual(expected);
  });
});
