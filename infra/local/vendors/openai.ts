/**
 * OpenAI's two endpoints and what they refuse. `gpt-4.1` alone does not reason; the others know different efforts.
 */
import {
  callIds,
  callsAnswered,
  commonFields,
  checkResultsAsked,
  serveChat,
  findUnknownField,
  type VendorChatCall,
  type ChatServer,
} from './chat.ts';
import {
  isCall,
  isLooseSchema,
  isOutput,
  createRefusal,
  responsesFields,
  responsesRules,
  type ResponsesCall,
} from './responses/rules.ts';
import { createEmbeddingEndpoint } from './embeddings.ts';
import { serveResponses } from './responses/serve.ts';
import { PrefixMemory, type EarlyFailures } from './script.ts';
import { asRecord, isRecord, jsonText, recordsIn } from '../../../shared/wire/json.ts';
import {
  replyWithJson,
  secretOf,
  type Check,
  type VendorRefusal,
  type Rules,
  type Vendor,
  type VendorReply,
  type VendorRequest,
} from './vendor.ts';

const vectorLengths = { 'text-embedding-3-small': 1536, 'text-embedding-ada-002': 1536 };

/** OpenAI itself: encrypted content belongs to the bearer token. */
export function createOpenaiDouble(): Vendor {
  const talking = createOpenaiEndpoints(/^gpt-(4\.1|5|5\.6|6-astra|6\.1-sol|6\.2-(astra|sol)|7-orion)$/);
  const vectors = createEmbeddingEndpoint(vectorLengths, refuse);
  const names = 'gpt-5.6 gpt-4.1 gpt-5 gpt-6-astra gpt-6.1-sol gpt-6.2-astra gpt-6.2-sol gpt-7-orion'.split(
    ' ',
  );
  return {
    name: 'openai',
    base: '/v1',
    models: [...names, ...Object.keys(vectorLengths)],
    rules: [...talking.rules, ...vectors.rules],
    serve: (request) =>
      request.path === '/v1/embeddings' ? vectors.serve(request.text) : talking.serve(request),
  };
}

const thinks = (call: VendorChatCall | ResponsesCall): boolean =>
  reasons(call.model) && effortOf(call) !== 'none';

/** Both endpoints, for whoever serves them below `/v1`. */
export function createOpenaiEndpoints(models: RegExp): {
  rules: string[];
  serve(request: VendorRequest, organization?: string): VendorReply;
} {
  const memory = new PrefixMemory();
  const responses = { rules: createResponsesRules(models), refuse, failures, thinks, memory };
  const chat: ChatServer = { ...chatParts, rules: createChatRules(models), thinks };
  return {
    rules: Object.keys({ ...chat.rules, ...responses.rules }),
    serve({ method, path, headers, text }, organization = secretOf(headers)) {
      const at = `${method} ${path}`;
      if (at === 'POST /v1/chat/completions') return serveChat({ headers, text }, chat, memory);
      if (at === 'POST /v1/responses') return serveResponses({ headers, text, organization }, responses);
      if (at === 'POST /v1/responses/compact')
        return serveResponses({ headers, text, organization, asks: 'compact' }, responses);
      if (at === 'POST /v1/responses/input_tokens')
        return serveResponses({ headers, text, organization, asks: 'count' }, responses);
      return refuse({ status: 404, message: `Invalid URL (${at})` });
    },
  };
}

function refuse({ status, message, type, code = null, param = null }: VendorRefusal): VendorReply {
  const kind = type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  const headers: Record<string, string> = status === 429 ? { 'retry-after': '2' } : {};
  return replyWithJson(status, { error: { message, type: kind, param, code } }, headers);
}

const failures: EarlyFailures = {
  overload: [503, 'The engine is currently overloaded, please try again later', { type: 'overloaded_error' }],
  quota: [
    429,
    'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
    { type: 'insufficient_quota', code: 'insufficient_quota' },
  ],
  throttle: [
    429,
    'Rate limit reached for gpt-5.6 on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 2s.',
    { type: 'requests', code: 'rate_limit_exceeded' },
  ],
  window: [
    400,
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    { code: 'context_length_exceeded', param: 'input' },
  ],
};

const chatParts: Omit<ChatServer, 'rules' | 'thinks'> = {
  refuse,
  failures,
  streamError: {
    error: {
      message: 'The server had an error while processing your request. Sorry about that!',
      type: 'server_error',
      param: null,
      code: null,
    },
  },
  cachedFrom: 1024,
  style: () => ({
    id: 'chatcmpl-CdEfGhIjKlMnOpQrStUvWxYz01234',
    callId: ({ turn, index }) => `call_${turn.question}${String(turn.step * 100 + index).padStart(16, 'a')}`,
    usage: ({ input, cacheRead, output, thinking }) => ({
      prompt_tokens: input + cacheRead,
      completion_tokens: output,
      total_tokens: input + cacheRead + output,
      prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: thinking,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    }),
  }),
};

type AnyCall = VendorChatCall | ResponsesCall;

const chatFields = [
  ...commonFields,
  ...(
    'audio frequency_penalty function_call functions logit_bias logprobs metadata modalities moderation ' +
    'parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention ' +
    'reasoning_effort safety_identifier seed service_tier store top_logprobs user verbosity web_search_options'
  ).split(' '),
];

/** Models since the fifth generation reason. */
const reasons = (model: string): boolean => /gpt-[567]/.test(model);

const effortOf = ({ body }: AnyCall): unknown =>
  body['reasoning_effort'] ?? asRecord(body['reasoning'])['effort'];

/**
 * The efforts of a model [anomalyco/opencode 26268, 2026-05-08, for gpt-5; litellm-docs 1173, 2026-09-03, for gpt-6-astra,
 * which takes `max` on Responses alone; the guides of 6.1 and 6.2, 2026-09-29 and 2026-11-17].
 */
function effortsOf(checkModel: string, isChat: boolean): string[] {
  if (checkModel.endsWith('gpt-5')) return ['minimal', 'low', 'medium', 'high'];
  const all = ['low', 'medium', 'high', 'xhigh', 'max'];
  // Made up, with efforts that no family has.
  if (checkModel.endsWith('gpt-7-orion')) return ['minimal', 'medium'];
  if (/gpt-6-astra/.test(checkModel)) return isChat ? all.slice(0, -1) : all;
  return /gpt-6\.(1-sol|2)/.test(checkModel) ? all : ['none', ...all];
}

/** A wrong key is refused with a 401 [platform.openai.com/docs/guides/error-codes]. */
const checkApiKey: Check<AnyCall> = ({ headers }) =>
  secretOf(headers).startsWith('wrong') && {
    status: 401,
    message:
      'Incorrect API key provided: wrong***. You can find your API key at https://platform.openai.com/account/api-keys.',
    code: 'invalid_api_key',
  };

/** Models that do not exist answer 404 [platform.openai.com/docs/guides/error-codes]. */
const model =
  (names: RegExp): Check<AnyCall> =>
  ({ model: name }) =>
    !names.test(name) && {
      status: 404,
      message: `The model \`${name}\` does not exist or you do not have access to it.`,
      code: 'model_not_found',
    };

/** Fields of the request that are not in the schema are refused [openai/openai-openapi]. */
const checkUnknownParameter =
  (fields: string[]): Check<AnyCall> =>
  ({ body }) => {
    const field = findUnknownField(body, fields);
    return field !== undefined && createRefusal(`Unknown parameter: '${field}'.`, field, 'unknown_parameter');
  };

/** Models that reason take no sampling parameters but the defaults [ItzCrazyKns/Vane/issues/1173, 2026-07-20]. */
function checkSampling({ body, model: name }: AnyCall): VendorRefusal | false {
  const field = ['temperature', 'top_p'].find((each) => typeof body[each] === 'number' && body[each] !== 1);
  const message = `Unsupported value: '${field}' does not support ${String(body[field ?? ''])} with this model. Only the default (1) value is supported.`;
  return reasons(name) && field !== undefined && createRefusal(message, field, 'unsupported_value');
}

/** An effort is one of those that the model knows [livekit/agents/pull/7169, 2026-09-08]. */
function checkEffort(call: AnyCall): VendorRefusal | undefined {
  const effort = effortOf(call);
  const efforts = effortsOf(call.model, 'messages' in call);
  if (effort === undefined || effort === null || !reasons(call.model) || efforts.includes(jsonText(effort)))
    return undefined;
  const param = 'messages' in call ? 'reasoning_effort' : 'reasoning.effort';
  const wanted = efforts.map((each) => `'${each}'`).join(', ');
  const message = `Unsupported value: '${param}' does not support '${jsonText(effort)}' with this model. Supported values are: ${wanted}.`;
  return createRefusal(message, param, 'unsupported_value');
}

/** A strict tool allows no other properties than its schema names [platform.openai.com/docs/guides/function-calling#strict-mode]. */
function checkStrictSchemas({ body }: AnyCall): VendorRefusal | undefined {
  for (const [index, tool] of recordsIn(body['tools']).entries()) {
    const { name, strict, parameters } = isRecord(tool['function']) ? tool['function'] : tool;
    const message = `Invalid schema for function '${jsonText(name)}': In context=(), 'additionalProperties' is required to be supplied and to be false.`;
    if (strict === true && isLooseSchema(parameters))
      return createRefusal(message, `tools[${index}].parameters`, 'invalid_function_parameters');
  }
  return undefined;
}

const refuseTooLong = (id: string, place: string): VendorRefusal =>
  createRefusal(
    `Invalid '${place}': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`,
    place,
    'string_above_max_length',
  );

const createChatRules = (names: RegExp): Rules<VendorChatCall> => ({
  'api-key': checkApiKey,
  'unknown-parameter': checkUnknownParameter(chatFields),
  model: model(names),
  // Options of a stream come with a stream [platform.openai.com/docs/api-reference/chat/create].
  'stream-options': ({ body }) =>
    isRecord(body['stream_options']) &&
    body['stream'] !== true &&
    createRefusal(
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      'stream_options',
    ),
  // Models that reason take max_completion_tokens, not max_tokens
  // [platform.openai.com/docs/api-reference/chat/create].
  'max-tokens': ({ body, model: name }) =>
    reasons(name) &&
    body['max_tokens'] !== undefined &&
    createRefusal(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
      'unsupported_parameter',
    ),
  sampling: checkSampling,
  efforts: checkEffort,
  // Function tools are refused on chat completions unless the effort is none [BerriAI/litellm/pull/34569,
  // 2026-07-24].
  'tools-need-responses': (call) =>
    reasons(call.model) &&
    recordsIn(call.body['tools']).length > 0 &&
    effortOf(call) !== 'none' &&
    createRefusal(
      `Function tools with reasoning_effort are not supported for ${call.model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
      'reasoning_effort',
    ),
  'strict-schemas': checkStrictSchemas,
  // Call ids have at most 64 characters [AnswerDotAI/fastllm/issues/45, 2026-06-08].
  'call-id-length': callIds((id) => id.length <= 64, refuseTooLong),
  // Each tool call is answered by a tool message directly after its turn [platform.openai.com/docs/api-reference/chat/create].
  'calls-answered': callsAnswered((ids) =>
    createRefusal(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
      'messages',
    ),
  ),
  // Each tool message answers a call of the turn before it [platform.openai.com/docs/api-reference/chat/create].
  'results-asked': checkResultsAsked((index) =>
    createRefusal(
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      `messages.[${index}].role`,
    ),
  ),
});

const createResponsesRules = (names: RegExp): Rules<ResponsesCall> => ({
  'api-key': checkApiKey,
  'unknown-parameter': checkUnknownParameter(responsesFields),
  model: model(names),
  sampling: checkSampling,
  efforts: checkEffort,
  'strict-schemas': checkStrictSchemas,
  // Call ids have at most 64 characters [AnswerDotAI/fastllm/issues/45, 2026-06-08].
  'call-id-length'({ items }) {
    const index = items.findIndex(
      (item) => (isCall(item) || isOutput(item)) && jsonText(item['call_id']).length > 64,
    );
    return index >= 0 && refuseTooLong(jsonText(items[index]?.['call_id']), `input[${index}].call_id`);
  },
  ...responsesRules,
});
