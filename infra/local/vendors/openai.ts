import type { ChatCall } from './chat/request.ts';
import { secretOf } from './chat/request.ts';
import { serveChat, type ChatServer } from './chat/serve.ts';
import { effortOf, openaiChatRules, openaiResponsesRules, reasons } from './openai-rules.ts';
import type { ResponsesCall } from './responses/request.ts';
import { serveResponses } from './responses/serve.ts';
import { jsonReply } from './script/frames.ts';
import { PrefixMemory } from './script/prefix-memory.ts';
import type { Refusal, RuleFacts, Vendor, VendorReply, VendorRequest } from './script/vendor.ts';
import type { EarlyFailure } from './script/words.ts';

/** OpenAI: `gpt-4.1` alone does not reason; the others know different efforts. Encrypted content belongs to the bearer token. */
export function openaiDouble(): Vendor {
  const models = ['gpt-5.6', 'gpt-4.1', 'gpt-5', 'gpt-6-astra', 'gpt-6.1-sol'];
  const endpoints = openaiEndpoints(/^gpt-(4\.1|5|5\.6|6-astra|6\.1-sol)$/);
  return {
    name: 'openai',
    base: '/v1',
    models,
    rules: endpoints.rules,
    serve: (request) => Promise.resolve(endpoints.serve(request, secretOf(request.headers))),
  };
}

const thinks = (call: ChatCall | ResponsesCall): boolean => reasons(call.model) && effortOf(call) !== 'none';

/** Both endpoints, for whoever serves them below `/v1`. */
export function openaiEndpoints(models: RegExp): {
  rules: RuleFacts[];
  serve(request: VendorRequest, organization: string): VendorReply;
} {
  const memory = new PrefixMemory();
  const chatRules = openaiChatRules(models);
  const responsesRules = openaiResponsesRules(models);
  const responses = { rules: responsesRules, refuse, failures, thinks, memory };
  const chat: ChatServer = { ...chatParts, rules: chatRules, thinks };
  return {
    rules: uniqueRules([...chatRules, ...responsesRules]),
    serve({ method, path, headers, text }, organization) {
      const at = `${method} ${path}`;
      if (at === 'POST /v1/chat/completions') return serveChat({ headers, text }, chat, memory);
      if (at === 'POST /v1/responses') return serveResponses({ headers, text, organization }, responses);
      if (at === 'POST /v1/responses/compact')
        return serveResponses({ headers, text, organization, compacts: true }, responses);
      return refuse({ status: 404, message: `Invalid URL (${at})` });
    },
  };
}

const uniqueRules = (rules: RuleFacts[]): RuleFacts[] => [
  ...new Map(rules.toReversed().map((rule) => [rule.id, rule])).values(),
];

function refuse({ status, message, type, code = null, param = null }: Refusal): VendorReply {
  const kind = type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  const headers: Record<string, string> = status === 429 ? { 'retry-after': '2' } : {};
  return jsonReply(status, { error: { message, type: kind, param, code } }, headers);
}

const failures: Record<EarlyFailure, Refusal> = {
  overload: {
    status: 503,
    message: 'The engine is currently overloaded, please try again later',
    type: 'overloaded_error',
  },
  quota: {
    status: 429,
    message:
      'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
    type: 'insufficient_quota',
    code: 'insufficient_quota',
  },
  throttle: {
    status: 429,
    message:
      'Rate limit reached for gpt-5.6 on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 2s.',
    type: 'requests',
    code: 'rate_limit_exceeded',
  },
  window: {
    status: 400,
    message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    code: 'context_length_exceeded',
    param: 'input',
  },
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
