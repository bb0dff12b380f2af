/**
 * DeepSeek's chat endpoint; `house-model` is a name of another server's for the same model. `kimi-k2.6` behaves like Moonshot's
 * Kimi, which has the same rule about thinking: its call ids (`search:0`) count anew in each turn.
 */
import {
  callsAnswered,
  createChatDouble,
  checkFunctionsOnly,
  checkResultsAsked,
  type VendorChatCall,
} from './chat.ts';
import { thoughtOf } from './script.ts';
import { asRecord, jsonText } from '../../../shared/wire/json.ts';
import {
  replyWithJson,
  secretOf,
  type VendorRefusal,
  type Rules,
  type Vendor,
  type VendorReply,
  type VendorRequest,
} from './vendor.ts';

export function createDeepseekDouble(): Vendor {
  const chat = createChatServer();
  return {
    ...chat,
    serve: (request) =>
      request.method === 'GET' && request.path === '/user/balance'
        ? replyWithBalance(request)
        : chat.serve(request),
  };
}

/** The example of the API page [api-docs.deepseek.com/api/get-user-balance]. */
const replyWithBalance = ({ headers }: VendorRequest): VendorReply =>
  secretOf(headers).startsWith('wrong')
    ? refuse({ status: 401, message: 'Authentication Fails', type: 'authentication_error' })
    : replyWithJson(200, {
        is_available: true,
        balance_infos: [
          { currency: 'CNY', total_balance: '110.00', granted_balance: '10.00', topped_up_balance: '100.00' },
        ],
      });

const createChatServer = (): Vendor =>
  createChatDouble(
    {
      name: 'deepseek',
      base: '',
      models: [
        'deepseek-v4-pro',
        'deepseek-v4-flash',
        'deepseek-flash',
        'deepseek-comet',
        'kimi-k2.6',
        'house-model',
      ],
      path: /^(\/v1)?\/chat\/completions$/,
      notFound: 'Not Found',
    },
    {
      rules,
      refuse,
      failures: {
        overload: [
          503,
          'Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.',
          { type: 'service_unavailable_error' },
        ],
        quota: [402, 'Insufficient Balance', { type: 'unknown_error', code: 'invalid_request_error' }],
        throttle: [429, 'Rate limit reached', { type: 'rate_limit_reached_error' }],
        window: [
          400,
          "This model's maximum context length is 1048576 tokens. However, you requested 1048600 tokens (1048500 in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
        ],
      },
      streamError: {
        error: { message: 'Internal Server Error', type: 'server_error', param: null, code: null },
      },
      thinks,
      cachedFrom: 64,
      style: ({ model }) => ({
        id: '8d3f5a52-d2f7-4ab6-9f0f-0c6a1d5e7b11',
        callId: ({ turn, index }) =>
          model.startsWith('kimi')
            ? `${turn.calls[index]?.name}:${index}`
            : `call_${turn.step}0_${index}deepseek`,
        thinkingField: 'reasoning_content',
        usage: ({ input, cacheRead, output, thinking }) => ({
          prompt_tokens: input + cacheRead,
          completion_tokens: output,
          total_tokens: input + cacheRead + output,
          prompt_tokens_details: { cached_tokens: cacheRead },
          completion_tokens_details: { reasoning_tokens: thinking },
          prompt_cache_hit_tokens: cacheRead,
          prompt_cache_miss_tokens: input,
        }),
      }),
      notes: (call) =>
        call.messages.some(({ calls, reasoning_content: sent }) => calls.length > 0 && sent === '')
          ? ['an empty reasoning_content']
          : [],
    },
  );

const thinks = ({ body }: VendorChatCall): boolean => asRecord(body['thinking'])['type'] !== 'disabled';

/** Turns with calls that came back with other thinking than the model's, or with none. */
const findSpoiledTurns = ({ messages }: VendorChatCall): number[] =>
  messages.flatMap(({ calls, reasoning_content: sent }, index) => {
    if (calls.length === 0 || sent === '') return [];
    const lastUser = messages.slice(0, index).findLastIndex(({ role }) => role === 'user');
    const step = messages.slice(lastUser + 1, index).filter((message) => message.calls.length > 0).length;
    const thought = thoughtOf(
      step,
      calls.map(({ name, input }) => ({ name, input, custom: false })),
    );
    return sent === thought ? [] : [index];
  });

const formatSerdeError = (message: string): string =>
  `Failed to deserialize the JSON body into the target type: ${message} at line 1 column 85`;

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra'];
const roles = ['system', 'user', 'assistant', 'tool', 'latest_reminder'];

const rules: Rules<VendorChatCall> = {
  // A wrong key is refused with a 401 [api-docs.deepseek.com/quick_start/error_codes].
  'api-key': ({ headers }) =>
    secretOf(headers).startsWith('wrong') && {
      status: 401,
      message: 'Authentication Fails, Your api key: ****rong is invalid',
      type: 'authentication_error',
    },
  // There is no developer role [theopenco/llmgateway/pull/3462, 2026-08-07].
  roles({ messages }) {
    const index = messages.findIndex(({ role }) => !roles.includes(role));
    const wanted = roles.map((role) => `\`${role}\``).join(', ');
    return (
      index >= 0 &&
      formatSerdeError(
        `messages[${index}].role: unknown variant \`${messages[index]?.role}\`, expected one of ${wanted}`,
      )
    );
  },
  // Models that do not exist are refused with the names of those that do
  // [api-docs.deepseek.com/quick_start/error_codes].
  model: ({ model }) =>
    !/^(deepseek-(v4-pro|(v4-)?flash|comet)|kimi-k2\.6|house-model)$/.test(model) && 'Model Not Exist',
  // Efforts are low, high, max and what is mapped to them [api-docs.deepseek.com/guides/thinking_mode, 2026-09-10];
  // those of `deepseek-comet` are made up.
  efforts({ model, body: { reasoning_effort: effort } }) {
    const known = model === 'deepseek-comet' ? ['high', 'max'] : efforts;
    const wanted = known.map((each) => `\`${each}\``).join(', ');
    const isKnown = known.includes(jsonText(effort ?? known[0]));
    return (
      !isKnown &&
      formatSerdeError(`reasoning_effort: unknown variant \`${jsonText(effort)}\`, expected one of ${wanted}`)
    );
  },
  // There is no json_schema, only json_object [api-docs.deepseek.com/guides/json_mode].
  'response-format': ({ body: { response_format: format } }) =>
    asRecord(format)['type'] === 'json_schema' && 'This response_format type is unavailable now',
  // A tool is a function; one of another type is refused [danny-avila/LibreChat/issues/12804, 2026-04-24].
  'functions-alone': checkFunctionsOnly((tool) =>
    formatSerdeError(`tools[${tool}]: missing field \`function\``),
  ),
  // Each tool call is answered by a tool message directly after its turn [api-docs.deepseek.com/guides/tool_calls].
  'calls-answered': callsAnswered(
    (ids) =>
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message: ${ids.join(', ')})`,
  ),
  // Each tool message answers a call of the turn before it [api-docs.deepseek.com/guides/tool_calls].
  'results-asked': checkResultsAsked(
    () => "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
  ),
  // While it thinks, turns with calls bring back their reasoning_content byte for byte, or an empty one
  // [api-docs.deepseek.com/guides/thinking_mode, 2026-05-25].
  'reasoning-content'(call) {
    const [first] = findSpoiledTurns(call);
    if (first === undefined || !thinks(call)) return undefined;
    const message = call.model.startsWith('kimi')
      ? `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${first}`
      : 'The `reasoning_content` in the thinking mode must be passed back to the API.';
    return message;
  },
};

const refuse = ({
  status,
  message,
  type = 'invalid_request_error',
  code = type,
}: VendorRefusal): VendorReply => replyWithJson(status, { error: { message, type, param: null, code } });
