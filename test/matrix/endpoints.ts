/** The endpoints of the matrix: the types of their requests, the shortest body, and the fields that a value requires. */
import { listIn, recordsIn, type JsonRecord } from '../../shared/wire/json.ts';
import type { Vocabulary } from './places.ts';

export const dialects = ['chat', 'messages', 'responses'] as const;
export type Dialect = (typeof dialects)[number];

interface MatrixEndpoint extends Vocabulary {
  path: string;
  /** Stable and beta. */
  types: readonly (readonly [file: string, name: string])[];
  /** Numbers that newer types lack and that clients still send. */
  older: readonly string[];
}

const hi = { role: 'user', content: 'hi' };
const parameters = {
  type: 'object',
  properties: { a: { type: 'string' } },
  additionalProperties: false,
  required: ['a'],
};
const picture = 'iVBORw0KGgoAAAANSUhEUg';
const file = 'JVBERi0xLjQK';

/** Values with a required format, by path or field name. */
export const probes: Vocabulary['probes'] = {
  url: ['https://probe7.example/a.png', 'https://other8.example/a.png'],
  image_url: ['https://probe7.example/a.png', 'https://other8.example/a.png'],
  file_url: ['https://probe7.example/a.pdf', 'https://other8.example/a.pdf'],
  server_url: ['https://probe7.example/mcp'],
  data: [`${picture}probe7`, `${picture}other8`],
  file_data: [`data:application/pdf;base64,${file}probe7`, `data:application/pdf;base64,${file}other8`],
  arguments: ['{"probe7":1}', '{"other8":1}'],
  schema: [{ ...parameters, description: 'probe7' }, parameters],
  parameters: [{ ...parameters, description: 'probe7' }, parameters],
  input_schema: [{ ...parameters, description: 'probe7' }, parameters],
  temperature: [0.37, 0.38],
  top_p: [0.37, 0.38],
  presence_penalty: [0.37, 0.38],
  frequency_penalty: [0.37, 0.38],
  n: [2],
  top_logprobs: [2],
  max_tokens: [3700, 3800],
  max_completion_tokens: [3700, 3800],
  max_output_tokens: [3700, 3800],
  budget_tokens: [1037, 20_000],

  encrypted_content: ['gAAAAprobe7', 'gAAAAother8'],
};

const least: Vocabulary['least'] = {
  '[input_image]': { image_url: 'https://probe7.example/a.png' },
  '[input_file]': { file_data: `data:application/pdf;base64,${file}probe7` },
  '[file].file': { file_data: `data:application/pdf;base64,${file}probe7` },
  '[function_call_output]': { call_id: 'call_probe7' },
  '[configuration_update]': { reasoning: { effort: 'low' } },
  '[json_schema].json_schema': { schema: parameters },
  '[document]': { source: { type: 'text', media_type: 'text/plain', data: 'probe7' } },
  '[code_execution_result]': { content: [] },
  '[bash_code_execution_result]': { content: [] },
  '[encrypted_code_execution_result]': { content: [] },
  'messages[system]': { content: 'probe7' },
  'messages[assistant]': { content: 'said' },
};

/** Default values of fields. */
const defaults: Vocabulary['defaults'] = {
  service_tier: 'auto',
  tool_choice: 'auto',
  function_call: 'auto',
  modalities: 'text',
  verbosity: 'medium',
  truncation: 'disabled',
  detail: 'auto',
  mode: 'standard',
  context: 'auto',
  speed: 'standard',
  allowed_callers: 'direct',
  parallel_tool_calls: true,
};

export const endpoints: Record<Dialect, MatrixEndpoint> = {
  chat: {
    path: '/v1/chat/completions',
    older: [],
    types: [['openai/resources/chat/completions/completions', 'ChatCompletionCreateParamsBase']],
    probes: {
      ...probes,
      model: ['m'],
      'tool_choice[function].function.name': ['look', 'see'],
      'tool_choice[custom].custom.name': ['paint', 'draw'],
      'function_call.name': ['look', 'see'],
      'tool_choice[allowed_tools].allowed_tools.tools[]': [{ type: 'function', function: { name: 'look' } }],
    },
    defaults,
    least,
    excludes: (path) => /\.type$|\.role$|^model$/.test(path),
    fill(field, value) {
      const { tools, ...plain } = { model: 'm', messages: [hi], tools: chatTools };
      if (field === 'messages')
        return { ...plain, tools, messages: [hi, ...recordsIn(value).flatMap(chatTurn)] };
      if (field.startsWith('function'))
        return {
          ...plain,
          functions: ['look', 'see'].map((name) => ({ name, parameters })),
          ...(value !== undefined && { [field]: value }),
        };
      const beside =
        field === 'top_logprobs' ? { logprobs: true } : field === 'stream_options' ? { stream: true } : {};
      return { ...plain, tools, ...beside, ...setField(field, value, tools) };
    },
  },
  messages: {
    path: '/v1/messages',
    older: ['temperature', 'top_p', 'top_k'],
    types: [
      ['@anthropic-ai/sdk/resources/messages/messages', 'MessageCreateParamsBase'],
      ['@anthropic-ai/sdk/resources/beta/messages/messages', 'MessageCreateParamsBase'],
    ],
    probes: { ...probes, model: ['m'], 'tool_choice[tool].name': ['look', 'see'] },
    defaults,
    least,
    excludes(path) {
      const [, role, block] = /^messages\[(user|assistant)\]\.content\[(\w+)\]/.exec(path) ?? [];
      if (block === undefined) return /\.type$|\.role$|^betas|^model$/.test(path);
      return role === 'assistant' ? saidBlocks.test(block) : modelBlocks.test(block);
    },
    fill(field, value) {
      const body = { model: 'm', max_tokens: 5000, messages: [hi], tools: messagesTools };
      if (field === 'messages') return { ...body, messages: [hi, ...recordsIn(value).flatMap(messagesTurn)] };
      return { ...body, ...setField(field, value, body.tools) };
    },
  },
  responses: {
    path: '/v1/responses',
    older: [],
    types: [
      ['openai/resources/responses/responses', 'ResponseCreateParamsBase'],
      ['openai/resources/beta/responses/responses', 'ResponseCreateParamsBase'],
    ],
    probes: {
      ...probes,
      model: ['m'],
      'tool_choice[function].name': ['look', 'see'],
      'tool_choice[custom].name': ['paint', 'draw'],
      'tool_choice[allowed_tools].tools[]': [{ type: 'function', name: 'look' }],
    },
    defaults,
    least,
    excludes: (path) => /\.type$|^betas|^model$/.test(path),
    fill(field, value) {
      const body = { model: 'm', input: [hi], tools: responsesTools };
      if (field === 'input' && Array.isArray(value))
        return { ...body, input: [hi, ...recordsIn(value).flatMap(itemsWith)] };
      return { ...body, ...setField(field, value, body.tools) };
    },
  },
};

/** A tool is placed next to others, and any other field in a call with a tool. */
function setField(field: string, value: unknown, tools: readonly JsonRecord[]): JsonRecord {
  if (value === undefined) return {};
  return { [field]: field === 'tools' ? [...tools, ...listIn(value)] : value };
}

const chatTools = [
  ...['look', 'see'].map((name) => ({ type: 'function', function: { name, parameters } })),
  ...['paint', 'draw'].map((name) => ({ type: 'custom', custom: { name } })),
];
const messagesTools = ['look', 'see'].map((name) => ({ name, input_schema: parameters }));
const responsesTools = [
  ...['look', 'see'].map((name) => ({ type: 'function', name, parameters, strict: false })),
  ...['paint', 'draw'].map((name) => ({ type: 'custom', name })),
];

/** A result needs its call. */
function chatTurn(message: JsonRecord): JsonRecord[] {
  const { role, tool_call_id: id } = message;
  if (role === 'tool')
    return [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      message,
    ];
  if (role === 'function')
    return [
      { role: 'assistant', content: null, function_call: { name: message['name'], arguments: '{}' } },
      message,
    ];
  const calls = recordsIn(message['tool_calls']).map((call) => ({
    role: 'tool',
    tool_call_id: call['id'],
    content: 'seen',
  }));
  const said = message['refusal'] === undefined ? message : { ...message, content: null };
  return role === 'assistant' ? [said, ...calls, hi] : [message];
}

const modelBlocks = /thinking|tool_use|_tool_result$|^compaction|^fallback|^mcp_tool/;
const saidBlocks =
  /^(?:image|document|search_result|tool_result|container_upload|tool_addition|tool_removal)$/;

function messagesTurn(message: JsonRecord): JsonRecord[] {
  const { role, content } = message;
  const blocks = recordsIn(content);
  const [block] = blocks;
  if (role === 'user') {
    const calls = blocks.filter(({ type }) => type === 'tool_result');
    const called = calls.map(({ tool_use_id: id }) => ({ type: 'tool_use', id, name: 'look', input: {} }));
    return called.length > 0 ? [{ role: 'assistant', content: called }, message] : [message];
  }
  if (role === 'system') return [hi, message];
  const results = blocks
    .filter(({ type }) => type === 'tool_use')
    .map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'seen' }));
  // Thinking stands before a text.
  const beside = /thinking/.test(String(block?.['type'])) ? [{ type: 'text', text: 'said' }] : [];
  const said = Array.isArray(content) ? { ...message, content: [...blocks, ...beside] } : message;
  return [said, { role: 'user', content: results.length > 0 ? results : 'go on' }];
}

function itemsWith(item: JsonRecord): JsonRecord[] {
  const { type, call_id: id } = item;
  const call = { call_id: id, name: 'look' };
  if (type === 'function_call_output') return [{ type: 'function_call', ...call, arguments: '{}' }, item];
  if (type === 'custom_tool_call_output') return [{ type: 'custom_tool_call', ...call, input: 'x' }, item];
  if (type === 'function_call')
    return [item, { type: 'function_call_output', call_id: id, output: 'seen' }, hi];
  if (type === 'custom_tool_call')
    return [item, { type: 'custom_tool_call_output', call_id: id, output: 'seen' }, hi];
  if (type === 'compaction_trigger') return [item];
  return [item, hi];
}

/** The shortest complete answer of each dialect. */
export const answers: Record<Dialect, object> = {
  chat: { choices: [{ index: 0, message: { content: 'whole' }, finish_reason: 'stop' }] },
  messages: {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'whole' }],
    stop_reason: 'end_turn',
  },
  responses: {
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'whole' }] }],
  },
};
