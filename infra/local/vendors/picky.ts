import {
  commonFields,
  functionsAlone,
  refusedCallId,
  unknownField,
  type ChatCall,
  type ChatStyle,
  serveChat,
  type ChatServer,
} from './chat.ts';
import { jsonReply, objectsIn, type Refusal, type Rule, type Vendor, type VendorReply } from './vendor.ts';
import { PrefixMemory } from './script.ts';

/**
 * A self-hosted chat server with the hard rules of several: Mistral's ids and error form, the system message of
 * Qwen's template behind vLLM, Ollama's contents. `picky` streams plainly; `picky-think` has its thinking in
 * `<think>` tags; `picky-repeat` sends names in pieces, indexes as texts, each call again as a whole in the last
 * chunk, and its usage inside the choice.
 */
export function pickyDouble(): Vendor {
  const memory = new PrefixMemory();
  return {
    name: 'picky',
    base: '/v1',
    models: ['picky', 'picky-think', 'picky-repeat'],
    rules,
    serve: (request) =>
      Promise.resolve(
        request.method === 'POST' && request.path === '/v1/chat/completions'
          ? serveChat(request, server, memory)
          : refuse({ status: 404, message: 'no Route matched with those values' }),
      ),
  };
}

/** `max_completion_tokens` is refused too [editor-code-assistant/eca 231]. */
const fields = [
  ...commonFields.filter((field) => field !== 'max_completion_tokens'),
  'parallel_tool_calls',
  'frequency_penalty',
  'presence_penalty',
  'random_seed',
];
const messageFields = ['role', 'content', 'tool_calls', 'tool_call_id', 'name'];

const mistralIds = 'https://github.com/anomalyco/opencode/issues/1680';
const extra = (loc: (string | number)[]): Refusal => ({
  status: 422,
  message: 'Extra inputs are not permitted',
  param: JSON.stringify(['body', ...loc]),
});

const rules: Rule<ChatCall>[] = [
  {
    id: 'model',
    says: 'Models that are not loaded answer 404.',
    source: 'https://docs.ollama.com/api/errors',
    date: '2026-11-21',
    check: ({ model }) =>
      !/^picky(-think|-repeat)?$/.test(model) && { status: 404, message: `model '${model}' not found` },
  },
  {
    id: 'unknown-field',
    says: 'Unknown fields of the request are refused.',
    source: 'https://github.com/editor-code-assistant/eca/issues/231',
    date: '2025-12-12',
    check({ body }) {
      const field = unknownField(body, fields);
      return field !== undefined && extra([field]);
    },
  },
  {
    id: 'unknown-message-field',
    says: 'Unknown fields of a message are refused, reasoning_content too.',
    source: 'https://github.com/BerriAI/litellm/issues/30835',
    date: '2026-06-19',
    check({ body }) {
      for (const [index, message] of objectsIn(body['messages']).entries()) {
        const field = unknownField(message, messageFields);
        if (field !== undefined) return extra(['messages', index, String(message['role']), field]);
      }
      return undefined;
    },
  },
  functionsAlone(
    { source: 'https://github.com/vllm-project/vllm (ChatCompletionToolsParam)', date: '2026-11-22' },
    (tool, type) => ({
      status: 422,
      message: `Input should be 'function': tools.${tool}.type is '${type}'`,
    }),
  ),
  {
    id: 'roles',
    says: 'There is no developer role.',
    source: 'https://github.com/bramses/chatgpt-md/issues/189',
    date: '2025-12-07',
    check({ messages }) {
      const found = messages.find(({ role }) => !['system', 'user', 'assistant', 'tool'].includes(role));
      const message = `Input tag '${found?.role}' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'`;
      return found && { status: 422, message };
    },
  },
  {
    id: 'system-first',
    says: 'One system message at most, and only as the first message.',
    source: 'https://github.com/vllm-project/vllm/issues/41114',
    date: '2026-04-28',
    check: ({ messages }) =>
      messages.some(({ role }, index) => role === 'system' && index > 0) && {
        status: 400,
        message: 'System message must be at the beginning.',
      },
  },
  {
    id: 'content-null',
    says: 'The content of a message is never null, nor absent.',
    source: 'upstreams.md §3: cheetahclaws 72 (Ollama)',
    date: '2026-11-21',
    check: ({ messages }) =>
      messages.some(({ content }) => content === null || content === undefined) && {
        status: 400,
        message: 'invalid message content type: <nil>',
      },
  },
  {
    id: 'call-ids',
    says: 'Call ids are nine letters or digits.',
    source: mistralIds,
    date: '2025-08-07',
    check(call) {
      const wrong = refusedCallId(call, (id) => /^[a-zA-Z0-9]{9}$/.test(id));
      return wrong && shortId(wrong.id);
    },
  },
  {
    id: 'result-ids',
    says: 'The call ids of tool messages are nine letters or digits.',
    source: mistralIds,
    date: '2025-08-07',
    check({ messages }) {
      const ids = messages
        .filter(({ role }) => role === 'tool')
        .map((message) => String(message['tool_call_id']));
      const wrong = ids.find((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
      return wrong !== undefined && shortId(wrong);
    },
  },
];

const shortId = (id: string): Refusal => ({
  status: 400,
  message: `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
  type: 'invalid_function_call',
  code: '3280',
});

/** A refused field has its place in the message, which then is an object. */
function refuse({
  status,
  message,
  type = 'invalid_request_error',
  code = null,
  param,
}: Refusal): VendorReply {
  const detail = param && [
    { type: 'extra_forbidden', loc: JSON.parse(param) as unknown, msg: message, input: null },
  ];
  return jsonReply(status, {
    object: 'error',
    message: detail ? { detail } : message,
    type,
    param: null,
    code,
  });
}

const server: ChatServer = {
  rules,
  refuse,
  failures: {
    overload: { status: 503, message: 'server busy, please try again.  maximum pending requests exceeded' },
    quota: { status: 402, message: 'Payment required' },
    throttle: { status: 429, message: 'Requests rate limit exceeded', type: 'rate_limited', code: '1300' },
    // vLLM says so, with a number as code.
    window: {
      status: 400,
      message: "This model's maximum context length is 32768 tokens. However, your prompt has 40000 tokens.",
      type: 'BadRequestError',
    },
  },
  streamError: {
    error: { message: 'the model stopped', type: 'InternalServerError', param: null, code: 500 },
  },
  thinks: ({ model }) => model === 'picky-think',
  cachedFrom: Infinity,
  style,
};

function style({ model }: ChatCall): ChatStyle {
  const repeats = model === 'picky-repeat';
  return {
    id: 'cmpl-7b1c',
    callId: ({ turn, index }) => `p${String(turn.step).padStart(4, '0')}c${String(index).padStart(3, '0')}`,
    thinkTags: model === 'picky-think',
    usage: ({ input, output }) => ({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
    }),
    ...(repeats && { usageIn: 'choice', nameInPieces: true, callIndex: String, repeatsCalls: true }),
  };
}
