/**
 * Anthropic's Messages. `claude-opus-5-5` and `claude-fable-5-1` have the rules of the newest models,
 * `claude-haiku-4-5` the older ones, `claude-sonnet-4-6` is between them. A call without any key is served; a key in the
 * wrong header is not.
 */
import { claudeBetas, type Gate } from './messages/betas.ts';
import { claudeModels, type ClaudeModel } from './messages/request.ts';
import {
  createGateRules,
  messagesRules,
  serveCount,
  serveMessages,
  type MessagesServer,
} from './messages/serve.ts';
import { PrefixMemory } from './script.ts';
import { replyWithJson, type VendorRefusal, type Rules, type Vendor, type VendorReply } from './vendor.ts';

export function createAnthropicDouble(): Vendor {
  const server: MessagesServer = {
    gate,
    isNewer,
    modelOf: (name) => claudeModels[name],
    account: ({ headers }) => headers['x-api-key'] ?? headers['authorization']?.replace('Bearer ', '') ?? '',
    refuse: messagesRefusal,
    memory: new PrefixMemory(),
    threads: new Map(),
    betas: claudeBetas,
  };
  return {
    name: 'anthropic',
    base: '/v1',
    models: Object.keys(claudeModels),
    listed: (model) => describeListedModel(claudeModels[model]!),
    rules: Object.keys({ ...createGateRules(server), ...messagesRules }),
    serve: (request) =>
      endpoints[`${request.method} ${request.path}`]?.(request, server) ??
      messagesRefusal({ status: 404, message: 'Not Found', type: 'not_found_error' }),
  };
}

/** Facts in the model list [anthropic-sdk-typescript 1.12, `ModelInfo`, November 2026]. */
function describeListedModel({ thinking, effort, sampling, outputMax }: ClaudeModel): object {
  const types = ['adaptive', 'disabled', 'enabled', 'between_tools'].map((type) => [
    type,
    { supported: thinking.some((each) => each === type) },
  ]);
  const levels = ['low', 'medium', 'high', 'xhigh', 'max'].map((level) => [
    level,
    { supported: effort && (level !== 'xhigh' || !sampling) },
  ]);
  const capabilities = {
    thinking: { supported: true, types: Object.fromEntries(types) as object },
    effort: { supported: effort, ...(Object.fromEntries(levels) as object) },
  };
  return { capabilities, max_tokens: outputMax };
}

const endpoints: Record<string, typeof serveMessages> = {
  'POST /v1/messages': serveMessages,
  'POST /v1/messages/count_tokens': serveCount,
};

const newer = '2026-10-21';
const isNewer = ({ headers }: Gate): boolean => headers['anthropic-version'] === newer;

/** Anthropic's error form. */
export const messagesRefusal = ({
  status,
  message,
  type = 'invalid_request_error',
  code,
}: VendorRefusal): VendorReply =>
  replyWithJson(
    status,
    {
      type: 'error',
      error: { type, message, ...(code && { details: { error_code: code } }) },
      request_id: 'req_011CDouble',
    },
    status === 429 ? { 'retry-after': '2' } : undefined,
  );

const refuseUnauthorized = (message: string): VendorRefusal => ({
  status: 401,
  message,
  type: 'authentication_error',
});

const gate: Rules<Gate> = {
  // The header anthropic-version names a version [docs/api/versioning].
  version({ headers: { 'anthropic-version': version } }) {
    if (version === undefined) return 'anthropic-version: header is required';
    return (
      !['2023-01-01', '2023-06-01', newer].includes(version) &&
      `anthropic-version: "${version}" is not a valid version`
    );
  },
  // The key is in x-api-key; since 2026-10-21 it is a bearer token
  // [developersdigest.tech/blog/claude-api-version-2026-10-21-sdk-migration, 2026-10-21].
  'key-header'(call) {
    const { 'x-api-key': key, authorization } = call.headers;
    if (isNewer(call))
      return key !== undefined && !authorization && refuseUnauthorized('Authorization header is required');
    return (
      authorization !== undefined && key === undefined && refuseUnauthorized('x-api-key header is required')
    );
  },
  // A wrong key is refused with a 401 [docs/api/errors].
  key: ({ headers }) =>
    /^(Bearer )?wrong/.test(headers['x-api-key'] ?? headers['authorization'] ?? '') &&
    refuseUnauthorized('invalid x-api-key'),
};
