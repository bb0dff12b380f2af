import { data, delta, done, finish, reset, usage } from '../../support/core-rig.ts';
import type { Step } from '../../support/core-rig.ts';

/** One upstream answer, and the client's request without model and input. */
export interface ResponsesCase {
  request?: object;
  steps: Step[];
  /** The answer breaks off, so there is no complete object to compare the events with. */
  fails?: boolean;
}

const piece = (index: number, more: object): string =>
  data({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...more }] } }] });
const begin = (index: number, name: string, id = `call_${index}`): string =>
  piece(index, { id, type: 'function', function: { name, arguments: '' } });
const go = (index: number, text: string): string => piece(index, { function: { arguments: text } });
const think = (text: string): string => data({ choices: [{ index: 0, delta: { reasoning_content: text } }] });
const refuse = (text: string): string => data({ choices: [{ index: 0, delta: { refusal: text } }] });
const error = data({ error: { message: 'The model is overloaded.', type: 'server_error', code: null } });
const end = (reason = 'stop', output = 7): Step[] => [finish(reason), usage(11, output), done];

const look = { type: 'function', name: 'look', parameters: { type: 'object' }, strict: false };
const weather = { ...look, name: 'get_weather', description: 'The weather in a city.' };
const files = { type: 'namespace', name: 'mcp__files', description: 'Files.', tools: [look] };

export const cases: Record<string, ResponsesCase> = {
  text: { steps: [delta('Good'), delta(' morning.'), ...end()] },
  'one-call': {
    request: { tools: [weather] },
    steps: [begin(0, 'get_weather'), go(0, '{"city":'), go(0, '"Rome"}'), ...end('tool_calls')],
  },
  'three-interleaved-calls': {
    request: { tools: [look, weather], parallel_tool_calls: true },
    steps: [
      begin(0, 'look'),
      begin(1, 'get_weather'),
      go(1, '{"city":'),
      begin(2, 'look'),
      go(0, '{"at":'),
      go(2, '{"at":3}'),
      go(0, '1}'),
      go(1, '"Rome"}'),
      ...end('tool_calls', 20),
    ],
  },
  'text-then-call': {
    request: { tools: [look] },
    steps: [delta('I look'), delta(' at it.'), begin(0, 'look'), go(0, '{"at":1}'), ...end('tool_calls')],
  },
  'call-then-text': {
    request: { tools: [look] },
    steps: [
      begin(0, 'look'),
      go(0, '{"at":1}'),
      delta('Looking'),
      delta(' now.'),
      begin(1, 'look'),
      go(1, '{"at":2}'),
      delta('Done.'),
      ...end('tool_calls', 20),
    ],
  },
  'reasoning-then-text': {
    request: { reasoning: { effort: 'low', summary: 'auto' } },
    steps: [think('Hm. '), think('The answer is 4.'), delta('4'), ...end()],
  },
  'reasoning-not-asked': { steps: [think('Hm. '), delta('4'), ...end()] },
  length: { request: { max_output_tokens: 7 }, steps: [delta('It was a dark and'), ...end('length')] },
  'length-in-a-call': {
    request: { tools: [look] },
    steps: [delta('I look.'), begin(0, 'look'), go(0, '{"at":'), ...end('length')],
  },
  'content-filter': { steps: [delta('First you'), ...end('content_filter')] },
  refusal: { steps: [refuse('I cannot'), refuse(' help with that.'), ...end()] },
  'error-mid-stream': { steps: [delta('It was a'), error], fails: true },
  'cut-in-a-call': {
    request: { tools: [look] },
    steps: [delta('I look.'), begin(0, 'look'), go(0, '{"at":'), reset],
    fails: true,
  },
  'usage-missing': { steps: [delta('one two three four'), finish(), done] },
  'empty-arguments': {
    request: { tools: [{ type: 'function', name: 'now' }] },
    steps: [begin(0, 'now'), ...end('tool_calls')],
  },
  'empty-answer': { steps: [...end()] },
  'namespace-tool': {
    request: { tools: [files] },
    steps: [begin(0, 'mcp__files__look'), go(0, '{"at":1}'), ...end('tool_calls')],
  },
  'silence-with-heartbeats': { steps: [100_000, delta('At'), 46_000, delta(' last.'), ...end()] },
};
