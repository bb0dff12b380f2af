import type { ChatContentPart, ChatMessage, ChatTool } from '../../../shared/wire/canonical-call.ts';
import type { FieldCase } from './field-table.ts';

const schema = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
};
const look: ChatTool = { type: 'function', function: { name: 'look', parameters: schema } };
const patch: ChatTool = { type: 'custom', custom: { name: 'patch', description: 'Patches.' } };
const hosted: ChatTool = { type: 'web_search' };
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = 'data:application/pdf;base64,JVBERi0xLjQK';

const asking = (...more: ChatContentPart[]): { messages: ChatMessage[] } => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, ...more] }],
});
const withTools = { tools: [look, patch] };
const onlyLook = { tools: [look] };
const instructed = (role: 'system' | 'developer', content: string): { messages: ChatMessage[] } => ({
  messages: [{ role, content }, ...asking().messages],
});
const later: ChatMessage[] = [{ role: 'assistant', content: 'Hello' }, ...asking().messages];
const allowed = { mode: 'auto', tools: [{ type: 'function', function: { name: 'look' } }] };

/** Must not be dropped: sent, or rejected so that the next candidate is asked. */
export const keptFields: FieldCase[] = [
  {
    field: 'response_format: json_schema',
    more: { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
  },
  { field: 'response_format: json_object', more: { response_format: { type: 'json_object' } } },
  { field: 'tools: function', more: onlyLook },
  {
    field: 'strict',
    base: onlyLook,
    more: { tools: [{ type: 'function', function: { name: 'look', parameters: schema, strict: true } }] },
  },
  { field: 'tools: custom', base: onlyLook, more: withTools },
  { field: 'tools: custom, by another endpoint', base: onlyLook, more: withTools, form: 'responses' },
  { field: 'tool_choice: none', base: onlyLook, more: { tool_choice: 'none' } },
  { field: 'tool_choice: required', base: onlyLook, more: { tool_choice: 'required' } },
  {
    field: 'tool_choice: a function',
    base: onlyLook,
    more: { tool_choice: { type: 'function', function: { name: 'look' } } },
  },
  {
    field: 'tool_choice: a custom tool',
    base: withTools,
    more: { tool_choice: { type: 'custom', custom: { name: 'patch' } } },
  },
  {
    field: 'tool_choice: allowed_tools',
    base: withTools,
    more: { tool_choice: { type: 'allowed_tools', allowed_tools: allowed } },
  },
  { field: 'parallel_tool_calls: false', base: onlyLook, more: { parallel_tool_calls: false } },
  { field: 'reasoning_effort', more: { reasoning_effort: 'high' } },
  { field: 'stop', more: { stop: ['END'] } },
  { field: 'n: 2', more: { n: 2 } },
  { field: 'max_tokens', more: { max_tokens: 400 } },
  {
    field: 'an image by URL',
    more: asking({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
  },
  { field: 'an image as base64', more: asking({ type: 'image_url', image_url: { url: pixel } }) },
  { field: 'a PDF by URL', more: asking({ type: 'file', file: { file_url: 'https://example.com/a.pdf' } }) },
  { field: 'a PDF as base64', more: asking({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } }) },
  { field: 'a system text', base: instructed('system', 'Be long.'), more: instructed('system', 'Be brief.') },
  {
    field: 'a developer text',
    base: instructed('developer', 'Be long.'),
    more: instructed('developer', 'Be brief.'),
  },
  {
    field: 'a system text in mid-conversation',
    base: { messages: [...asking().messages, ...later] },
    more: { messages: [...asking().messages, ...later, { role: 'system', content: 'Be brief.' }] },
  },
];

/** May be dropped, and is then named in the header. */
export const freeFields: FieldCase[] = [
  { field: 'temperature', more: { temperature: 0.5 } },
  { field: 'top_p', more: { top_p: 0.5 } },
  { field: 'presence_penalty', more: { presence_penalty: 0.5 } },
  { field: 'frequency_penalty', more: { frequency_penalty: 0.5 } },
  { field: 'top_k', more: { top_k: 5 } },
  { field: 'verbosity', more: { verbosity: 'low' } },
  { field: 'seed', more: { seed: 1 } },
  { field: 'logprobs, top_logprobs', more: { logprobs: true, top_logprobs: 2 } },
  { field: 'user', more: { user: 'u' } },
  { field: 'safety_identifier', more: { safety_identifier: 's' } },
  { field: 'prompt_cache_key', more: { prompt_cache_key: 'k' } },
  { field: 'metadata', more: { metadata: { a: 'b' } } },
  { field: 'service_tier', more: { service_tier: 'default' } },
  {
    field: 'service_tier, in params.allow',
    more: { service_tier: 'default' },
    settings: { allow: ['service_tier'] },
  },
  {
    field: 'service_tier: fast, with a factor',
    more: { service_tier: 'fast' },
    settings: { serviceTiers: { fast: 2 } },
  },
  { field: 'a hosted tool', base: onlyLook, more: { tools: [look, hosted] } },
  {
    field: 'prompt_cache_options',
    more: {},
    unknown: { prompt_cache_options: { mode: 'explicit', ttl: '30m' } },
  },
  {
    field: 'prompt_cache_breakpoint',
    more: {
      messages: [
        {
          role: 'user',
          content: [{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }],
        },
      ],
    },
  },
  { field: 'min_p, as servers of open models have it', more: {}, unknown: { min_p: 0.1 } },
  { field: 'an unknown field of a chat client', more: {}, unknown: { made_up: 1 } },
  { field: 'an unknown field of a Responses client', more: {}, unknown: { made_up: 1 }, form: 'responses' },
];
