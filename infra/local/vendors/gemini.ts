/**
 * Google's OpenAI-compatible endpoint. `gemini-3-pro-preview` signs the first call of a turn;
 * `gemini-3-flash-preview` does so in a last piece without an index and gives all calls the index 0;
 * `gemini-3.8-flash` signs like the first, knows fewer efforts and takes no answer as the last turn; `gemini-2.5-flash`
 * signs nothing.
 */
import { createHash } from 'node:crypto';
import {
  createChatDouble,
  commonFields,
  checkFunctionsOnly,
  findUnknownField,
  type VendorChatCall,
  type ChatStyle,
} from './chat.ts';
import { asRecord, isRecord, jsonText, recordsIn } from '../../../shared/wire/json.ts';
import {
  replyWithJson,
  secretOf,
  type VendorRefusal,
  type Rules,
  type Vendor,
  type VendorReply,
} from './vendor.ts';

export const createGeminiDouble = (): Vendor =>
  createChatDouble(
    {
      name: 'gemini',
      base: '/v1beta/openai',
      models: ['gemini-3-pro-preview', 'gemini-3-flash-preview', 'gemini-3.8-flash', 'gemini-2.5-flash'],
      path: /^\/v1beta\/openai\/chat\/completions$/,
      notFound: 'Requested entity was not found.',
    },
    {
      rules,
      refuse,
      failures: {
        overload: [503, 'The model is overloaded. Please try again later.'],
        quota: [
          429,
          'You exceeded your current quota, please check your plan and billing details.',
          { code: 'RATE_LIMIT_EXCEEDED' },
        ],
        throttle: [429, 'Resource has been exhausted (e.g. check quota).'],
        window: [
          400,
          'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
        ],
      },
      streamError: [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
      thinks: ({ body }) => body['reasoning_effort'] !== 'none',
      cachedFrom: 2048,
      style: chooseStyle,
      notes: ({ model, messages }) =>
        signs(model) &&
        messages.some(({ calls: [first] }) => first && readSignature(first.sent) === undefined)
          ? ['a call without its thought signature in an earlier turn']
          : [],
    },
  );

const fields = [
  ...commonFields,
  'parallel_tool_calls',
  'reasoning_effort',
  'modalities',
  'service_tier',
  'extra_body',
];

const callFields = ['id', 'type', 'function', 'custom', 'extra_content'];
/** `refusal` is in the double's own answers. */
const messageFields = ['role', 'content', 'name', 'refusal', 'tool_calls', 'tool_call_id', 'extra_content'];

const functionFields = ['name', 'description', 'parameters', 'strict'];

/** The first unknown field inside a message or a tool, and where it is. */
function findUnknownNested(body: Record<string, unknown>): { place: string; field: string } | undefined {
  const places: [string, Record<string, unknown>, string[]][] = [];
  for (const [index, message] of recordsIn(body['messages']).entries()) {
    const place = `messages[${index}]`;
    places.push([place, message, messageFields]);
    for (const [part, value] of recordsIn(message['content']).entries())
      places.push([`${place}.content[${part}]`, value, ['type', jsonText(value['type'])]]);
    for (const [call, value] of recordsIn(message['tool_calls']).entries())
      places.push([`${place}.tool_calls[${call}]`, value, callFields]);
  }
  for (const [index, tool] of recordsIn(body['tools']).entries()) {
    places.push([`tools[${index}]`, tool, ['type', 'function', 'custom']]);
    const { function: declared } = tool;
    if (isRecord(declared)) places.push([`tools[${index}].function`, declared, functionFields]);
  }
  for (const [place, value, known] of places) {
    const field = findUnknownField(value, known);
    if (field !== undefined) return { place, field };
  }
  return undefined;
}

const signs = (model: string): boolean => model.startsWith('gemini-3');
const skip = 'skip_thought_signature_validator';

/** A signature belongs to one call: name and arguments. */
const signatureOf = (name: string, input: string): string =>
  createHash('sha512').update(`gemini\n${name}\n${input}`).digest('base64');

function readSignature(sent: Record<string, unknown>): unknown {
  return asRecord(asRecord(sent['extra_content'])['google'])['thought_signature'];
}

/** Turns with calls after the last user message: the ones that Gemini validates. */
function listCurrentSteps({ messages }: VendorChatCall) {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  return messages.flatMap(({ calls: [first] }, index) =>
    first && index > lastUser ? [{ first, index }] : [],
  );
}

/** The compatible endpoint takes `minimal` and `medium` for 3 Pro, which has two levels [ENTERPILOT/GoModel 862, 2026-09-02]. */
function levelsOf(model: string): string[] {
  const levels = ['low', 'medium', 'high'];
  if (model.includes('3.8')) return levels;
  return model.includes('2.5-flash') ? ['none', 'minimal', ...levels] : ['minimal', ...levels];
}

const signatures = 'https://ai.google.dev/gemini-api/docs/thought-signatures';

const rules: Rules<VendorChatCall> = {
  // A wrong key is refused with a 400 whose reason is API_KEY_INVALID
  // [ai.google.dev/gemini-api/docs/troubleshooting].
  'api-key': ({ headers }) =>
    secretOf(headers).startsWith('wrong') && {
      status: 400,
      message: 'API key not valid. Please pass a valid API key.',
      code: 'API_KEY_INVALID',
    },
  // Fields that Gemini does not know are refused by name [Alishahryar1/free-claude-code/issues/542, 2026-05-24].
  'unknown-name'({ body }) {
    const field = findUnknownField(body, fields);
    const message = `Invalid JSON payload received. Unknown name "${field}": Cannot find field.`;
    return field !== undefined && { status: 400, message, param: field };
  },
  // Unknown fields of messages, their parts and calls, and of tools are refused by name and place
  // [ai.google.dev/gemini-api/docs/openai].
  'unknown-nested-name'({ body }) {
    const found = findUnknownNested(body);
    const message = `Invalid JSON payload received. Unknown name "${found?.field}" at '${found?.place}': Cannot find field.`;
    return found && { status: 400, message, param: found.field };
  },
  // A tool is a function; one of another type is refused [ai.google.dev/gemini-api/docs/openai].
  'functions-alone': checkFunctionsOnly(
    (tool) => `Invalid value at 'tools[${tool}].type': only functions are supported.`,
  ),
  // Models that do not exist answer 404 [ai.google.dev/gemini-api/docs/troubleshooting].
  model: ({ model }) =>
    !/^(models\/)?gemini-(3-(pro|flash)-preview|3\.8-flash|2\.5-flash)$/.test(model) && {
      status: 404,
      message: `models/${model} is not found for API version v1main, or is not supported for generateContent.`,
    },
  // An effort is a thinking level of the model; only 2.5 Flash stops thinking [vercel/ai/issues/18986, 2026-08-18].
  'thinking-level'({ body: { reasoning_effort: effort }, model }) {
    if (effort === undefined || levelsOf(model).includes(jsonText(effort))) return undefined;
    const level = jsonText(effort).toUpperCase();
    const message = `Thinking level ${level} is not supported for this model. Please retry with other thinking level.`;
    return message;
  },
  // An inline image has a registered type [ogkalu2/comic-translate/pull/399, 2026-01-28].
  'image-type': ({ body }) =>
    JSON.stringify(body['messages']).includes('"data:image/jpg;') && 'Unsupported MIME type: image/jpg',
  // Newer models take no conversation that ends with an answer [LibreChat-AI/agents/pull/323, 2026-07-21].
  'last-turn': ({ messages, model }) =>
    model.includes('3.8') &&
    messages.at(-1)?.role === 'assistant' &&
    'Requests ending with a model turn are not supported unless the last part is a function response.',
  // The first call of each step since the last user message needs its thought signature
  // [ai.google.dev/gemini-api/docs/thought-signatures, 2026-06-22].
  'signature-missing'(call) {
    const lost = listCurrentSteps(call).find(({ first }) => readSignature(first.sent) === undefined);
    if (!signs(call.model) || !lost) return undefined;
    return {
      status: 400,
      message: `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${lost.first.name}\` , position ${lost.index + 1}. Please refer to ${signatures} for more details.`,
    };
  },
  // A thought signature is the one of its call, or the documented one that skips the validation
  // [ai.google.dev/gemini-api/docs/thought-signatures].
  'signature-valid'(call) {
    const wrong = listCurrentSteps(call).some(({ first: { sent, name, input } }) => {
      const signature = readSignature(sent);
      return signature !== skip && signature !== signatureOf(name, input);
    });
    return signs(call.model) && wrong && 'Thought signature is not valid.';
  },
};

const statusNames: Record<number, string> = {
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

/** Google wraps the error of this endpoint in a list. */
function refuse({ status, message, code, param }: VendorRefusal): VendorReply {
  const details = [
    ...(code
      ? [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code, domain: 'googleapis.com' }]
      : []),
    ...(param
      ? [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            fieldViolations: [{ description: message }],
          },
        ]
      : []),
    ...(status === 429 ? [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' }] : []),
  ];
  const error = { code: status, message, status: statusNames[status] ?? 'INVALID_ARGUMENT', details };
  return replyWithJson(status, [{ error }]);
}

function chooseStyle({ model }: VendorChatCall): ChatStyle {
  const flash = model.includes('3-flash');
  return {
    id: 'Zr8gaY2hNd6kmtkP',
    callId: ({ turn, index }) => `function-call-${turn.question}${1_000_000 + turn.step * 10 + index}`,
    // Gemini counts thinking only in the total.
    usage: ({ input, cacheRead, output, thinking }) => ({
      prompt_tokens: input + cacheRead,
      completion_tokens: output - thinking,
      total_tokens: input + cacheRead + output,
      ...(cacheRead > 0 && { prompt_tokens_details: { cached_tokens: cacheRead } }),
    }),
    wholeCalls: true,
    ...(flash && { extraTrails: true, callIndex: () => 0 }),
    extra({ turn, index }) {
      const call = turn.calls[index];
      // Only the first of parallel calls is signed.
      if (!signs(model) || index > 0 || !call) return undefined;
      return { extra_content: { google: { thought_signature: signatureOf(call.name, call.input) } } };
    },
  };
}
