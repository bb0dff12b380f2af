import { claudeModels } from './messages/request.ts';
import { gateRules, messagesRules, serveMessages, type Gate, type MessagesServer } from './messages/serve.ts';
import { jsonReply, type Refusal, type Rule, type Vendor, type VendorReply } from './vendor.ts';
import { PrefixMemory } from './script.ts';

/**
 * Anthropic's Messages. `claude-opus-5-5` and `claude-fable-5-1` have the rules of the newest models,
 * `claude-haiku-4-5` the older ones, `claude-sonnet-4-6` is between them. A call without any key is served; a key in the
 * wrong header is not.
 */
export function anthropicDouble(): Vendor {
  const server: MessagesServer = {
    gate,
    isNewer,
    modelOf: (name) => claudeModels[name],
    account: ({ headers }) => headers['x-api-key'] ?? headers['authorization']?.replace('Bearer ', '') ?? '',
    refuse: messagesRefusal,
    memory: new PrefixMemory(),
  };
  return {
    name: 'anthropic',
    base: '/v1',
    models: Object.keys(claudeModels),
    rules: [...gateRules(server), ...messagesRules],
    serve: ({ method, path, headers, text }) =>
      Promise.resolve(
        method === 'POST' && path === '/v1/messages'
          ? serveMessages({ headers, text }, server)
          : messagesRefusal({ status: 404, message: 'Not Found', type: 'not_found_error' }),
      ),
  };
}

const newer = '2026-10-21';
const isNewer = ({ headers }: Gate): boolean => headers['anthropic-version'] === newer;

/** Anthropic's error form. */
export const messagesRefusal = ({ status, message, type = 'invalid_request_error' }: Refusal): VendorReply =>
  jsonReply(
    status,
    { type: 'error', error: { type, message }, request_id: 'req_011CDouble' },
    status === 429 ? { 'retry-after': '2' } : undefined,
  );

const unauthorized = (message: string): Refusal => ({ status: 401, message, type: 'authentication_error' });
const versions = 'https://platform.claude.com/docs/en/api/versioning';

const gate: Rule<Gate>[] = [
  {
    id: 'version',
    says: 'The header anthropic-version names a version.',
    source: versions,
    date: '2026-11-21',
    check({ headers: { 'anthropic-version': version } }) {
      if (version === undefined)
        return {
          status: 400,
          message: 'anthropic-version: header is required',
          type: 'invalid_request_error',
        };
      return (
        !['2023-01-01', '2023-06-01', newer].includes(version) && {
          status: 400,
          message: `anthropic-version: "${version}" is not a valid version`,
          type: 'invalid_request_error',
        }
      );
    },
  },
  {
    id: 'key-header',
    says: 'The key is in x-api-key; since 2026-10-21 it is a bearer token.',
    source: 'https://developersdigest.tech/blog/claude-api-version-2026-10-21-sdk-migration',
    date: '2026-10-21',
    check(call) {
      const { 'x-api-key': key, authorization } = call.headers;
      if (isNewer(call))
        return key !== undefined && !authorization && unauthorized('Authorization header is required');
      return authorization !== undefined && key === undefined && unauthorized('x-api-key header is required');
    },
  },
  {
    id: 'key',
    says: 'A wrong key is refused with a 401.',
    source: 'https://platform.claude.com/docs/en/api/errors',
    date: '2026-11-21',
    check: ({ headers }) =>
      /^(Bearer )?wrong/.test(headers['x-api-key'] ?? headers['authorization'] ?? '') &&
      unauthorized('invalid x-api-key'),
  },
];
