/**
 * A self-hosted chat server with the hard rules of several: Mistral's ids and error form, the system message of
 * Qwen's template behind vLLM, Ollama's contents. `picky` streams plainly; `picky-think` has its thinking in
 * `<think>` tags; `picky-repeat` sends names in pieces, indexes as texts, each call again as a whole in the last
 * chunk, and its usage inside the choice.
 */
import {
  callIds,
  createChatDouble,
  commonFields,
  checkFunctionsOnly,
  findUnknownField,
  type VendorChatCall,
  type ChatStyle,
} from './chat.ts';
import { recordsIn } from '../../../shared/wire/json.ts';
import { replyWithJson, type VendorRefusal, type Rules, type Vendor, type VendorReply } from './vendor.ts';

export const createPickyDouble = (): Vendor =>
  createChatDouble(
    {
      name: 'picky',
      base: '/v1',
      models: ['picky', 'picky-think', 'picky-repeat'],
      path: /^\/v1\/chat\/completions$/,
      notFound: 'no Route matched with those values',
    },
    {
      rules,
      refuse,
      failures: {
        overload: [503, 'server busy, please try again.  maximum pending requests exceeded'],
        quota: [402, 'Payment required'],
        throttle: [429, 'Requests rate limit exceeded', { type: 'rate_limited', code: '1300' }],
        // vLLM says so, with a number as code.
        window: [
          400,
          "This model's maximum context length is 32768 tokens. However, your prompt has 40000 tokens.",
          { type: 'BadRequestError' },
        ],
      },
      streamError: {
        error: { message: 'the model stopped', type: 'InternalServerError', param: null, code: 500 },
      },
      thinks: ({ model }) => model === 'picky-think',
      cachedFrom: Infinity,
      style: chooseStyle,
    },
  );

/** `max_completion_tokens` is refused too [editor-code-assistant/eca 231]. */
const fields = [
  ...commonFields.filter((field) => field !== 'max_completion_tokens'),
  'parallel_tool_calls',
  'frequency_penalty',
  'presence_penalty',
  'random_seed',
];
const messageFields = ['role', 'content', 'tool_calls', 'tool_call_id', 'name'];

const refuseExtra = (loc: (string | number)[]): VendorRefusal => ({
  status: 422,
  message: 'Extra inputs are not permitted',
  param: JSON.stringify(['body', ...loc]),
});

const nineCharacters = /^[a-zA-Z0-9]{9}$/;

const refuseId = (id: string): VendorRefusal => ({
  status: 400,
  message: `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
  type: 'invalid_function_call',
  code: '3280',
});

const rules: Rules<VendorChatCall> = {
  // Models that are not loaded answer 404 [docs.ollama.com/api/errors].
  model: ({ model }) =>
    !/^picky(-think|-repeat)?$/.test(model) && { status: 404, message: `model '${model}' not found` },
  // Unknown fields of the request are refused [editor-code-assistant/eca/issues/231, 2025-12-12].
  'unknown-field'({ body }) {
    const field = findUnknownField(body, fields);
    return field !== undefined && refuseExtra([field]);
  },
  // Unknown fields of a message are refused, reasoning_content too [BerriAI/litellm/issues/30835, 2026-06-19].
  'unknown-message-field'({ body }) {
    for (const [index, message] of recordsIn(body['messages']).entries()) {
      const field = findUnknownField(message, messageFields);
      if (field !== undefined) return refuseExtra(['messages', index, String(message['role']), field]);
    }
    return undefined;
  },
  // A tool is a function; one of another type is refused [vllm-project/vllm (ChatCompletionToolsParam)].
  'functions-alone': checkFunctionsOnly((tool, type) => ({
    status: 422,
    message: `Input should be 'function': tools.${tool}.type is '${type}'`,
  })),
  // There is no developer role [bramses/chatgpt-md/issues/189, 2025-12-07].
  roles({ messages }) {
    const found = messages.find(({ role }) => !['system', 'user', 'assistant', 'tool'].includes(role));
    const message = `Input tag '${found?.role}' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'`;
    return found && { status: 422, message };
  },
  // One system message at most, and only as the first message [vllm-project/vllm/issues/41114, 2026-04-28].
  'system-first': ({ messages }) =>
    messages.some(({ role }, index) => role === 'system' && index > 0) &&
    'System message must be at the beginning.',
  // The content of a message is never null, nor absent [upstreams.md §3: cheetahclaws 72 (Ollama)].
  'content-null': ({ messages }) =>
    messages.some(({ content }) => content === null || content === undefined) &&
    'invalid message content type: <nil>',
  // Call ids are nine letters or digits [anomalyco/opencode/issues/1680, 2025-08-07].
  'call-ids': callIds((id) => nineCharacters.test(id), refuseId),
  // The call ids of tool messages are nine letters or digits [anomalyco/opencode/issues/1680, 2025-08-07].
  'result-ids'({ messages }) {
    const ids = messages
      .filter(({ role }) => role === 'tool')
      .map((message) => String(message['tool_call_id']));
    const wrong = ids.find((id) => !nineCharacters.test(id));
    return wrong !== undefined && refuseId(wrong);
  },
};

/** A refused field has its place in the message, which then is an object. */
function refuse({
  status,
  message,
  type = 'invalid_request_error',
  code = null,
  param,
}: VendorRefusal): VendorReply {
  const detail = param && [
    { type: 'extra_forbidden', loc: JSON.parse(param) as unknown, msg: message, input: null },
  ];
  return replyWithJson(status, {
    object: 'error',
    message: detail ? { detail } : message,
    type,
    param: null,
    code,
  });
}

function chooseStyle({ model }: VendorChatCall): ChatStyle {
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
