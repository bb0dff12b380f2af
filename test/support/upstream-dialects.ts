import type { Script } from './scripted-upstream.ts';
import { chunk, chunkOf, usage, usageChunk } from './upstream-frames.ts';
import { frames } from './upstream-scripts.ts';

/** Every way in which other vendors say "Hello there." with finish reason `stop`. */
export const textDialects = {
  contentArray: frames(
    chunk({ role: 'assistant', content: [{ type: 'text', text: 'Hello' }] }),
    chunk({ content: [{ type: 'text', text: ' there.' }] }),
    chunk({}, 'stop', { usage }),
  ),
  missingRole: frames(
    chunk({ content: 'Hello' }),
    chunk({ content: ' there.' }),
    chunk({}, 'stop'),
    usageChunk(),
  ),
  missingIndexAndIds: frames(
    { choices: [{ delta: { role: 'assistant', content: 'Hello' } }] },
    { choices: [{ delta: { content: ' there.' } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }], usage },
  ),
  finishWithContent: frames(
    chunk({ role: 'assistant', content: 'Hello' }),
    chunk({ content: ' there.' }, 'stop'),
    usageChunk(),
  ),
  wholeInOneChunk: frames(chunk({ role: 'assistant', content: 'Hello there.' }, 'stop', { usage })),
  nullDeltas: frames(
    chunk({ role: 'assistant', content: 'Hello', tool_calls: null, function_call: null, refusal: null }),
    chunk({ role: 'assistant', content: ' there.', tool_calls: [] }),
    chunk({ content: null }, 'stop'),
    usageChunk(),
  ),
  emptyFirstFrame: frames(
    { ...chunkOf([]), prompt_filter_results: [] },
    chunk({ role: 'assistant', content: 'Hello' }),
    chunk({ content: ' there.' }),
    chunk({}, 'stop'),
    usageChunk(),
  ),
  crlfAndComments: raw(
    (list) =>
      `: ping\r\n\r\n${list.map((item) => `event: message\r\nid: 1\r\ndata: ${item}\r\n\r\n`).join('')}`,
  ),
  noSpaceAfterColon: raw((list) => list.map((item) => `data:${item}\n\n`).join('')),
  oneByteAtATime: async (_call, reply) => {
    const bytes = new TextEncoder().encode(standard.map((item) => `data: ${item}\n\n`).join(''));
    for (const byte of bytes) await reply.write(Uint8Array.of(byte));
    reply.end();
  },
  noDone: raw((list) =>
    list
      .slice(0, -1)
      .map((item) => `data: ${item}\n\n`)
      .join(''),
  ),
  noLastNewline: raw((list) => list.map((item) => `data: ${item}`).join('\n\n')),
  dataAfterDone: raw(
    (list) =>
      `${list.map((item) => `data: ${item}\n\n`).join('')}data: {"choices":[{"delta":{"content":"late"}}]}\n\n`,
  ),
  junkBetween: raw((list) => list.map((item) => `junk line\n\ndata: ${item}\n\n`).join('')),
} as const satisfies Record<string, Script>;

/** Every way in which a call of `get_weather` with {"city":"Rome"} arrives. */
export const toolDialects = {
  missingIndexAndType: frames(
    chunk({
      role: 'assistant',
      tool_calls: [{ id: 'call_1', function: { name: 'get_weather', arguments: '{"city":' } }],
    }),
    chunk({ tool_calls: [{ function: { arguments: '"Rome"}' } }] }),
    chunk({}, 'tool_calls'),
    usageChunk(),
  ),
  wholeInOneDelta: frames(
    chunk({
      role: 'assistant',
      tool_calls: [
        {
          index: 0,
          id: 'call_1',
          type: 'function',
          function: { name: 'get_weather', arguments: '{"city":"Rome"}' },
        },
      ],
    }),
    chunk({}, 'tool_calls'),
    usageChunk(),
  ),
  finishSaysStop: frames(
    chunk({
      role: 'assistant',
      tool_calls: [
        {
          index: 0,
          id: 'call_1',
          type: 'function',
          function: { name: 'get_weather', arguments: '{"city":"Rome"}' },
        },
      ],
    }),
    chunk({}, 'stop'),
    usageChunk(),
  ),
  sparseIndex: frames(
    chunk({
      role: 'assistant',
      tool_calls: [{ index: 1, id: '', type: '', function: { name: 'get_weather', arguments: '' } }],
    }),
    chunk({ tool_calls: [{ index: 1, function: { arguments: '{"city":"Rome"}' } }] }),
    chunk({}, 'tool_calls'),
    usageChunk(),
  ),
  legacyFunctionCall: frames(
    chunk({ role: 'assistant', function_call: { name: 'get_weather', arguments: '' } }),
    chunk({ function_call: { arguments: '{"city":' } }),
    chunk({ function_call: { arguments: '"Rome"}' } }),
    chunk({}, 'function_call'),
    usageChunk(),
  ),
} as const satisfies Record<string, Script>;

const standard = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Hello' }),
  chunk({ content: ' there.' }),
  chunk({}, 'stop'),
  usageChunk(),
  '[DONE]',
].map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));

/** The standard stream, spelt in another way. */
function raw(spell: (data: string[]) => string): Script {
  return async (_call, reply) => {
    await reply.write(spell(standard));
    reply.end();
  };
}
