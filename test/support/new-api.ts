import type { Script } from './scripted-upstream.ts';

export interface NewApiKey {
  /** In the site's unit. */
  limit: number;
  /** In the site's unit. */
  used: number;
  /** True if the site's billing paths are closed and only the newer path is left. */
  isNewer?: boolean;
  isUnlimited?: boolean;
}

/** One unit of the site in the newer path's quota. */
const quotaPerUnit = 500_000;

/**
 * Answers balance requests of a key like new-api [QuantumNous/new-api, `internal/billing/controller` and
 * `controller/token.go`, November 2026]. Keys are bearer tokens; an invalid key is rejected with the key in the
 * message, as some sites do.
 */
export const newApiBalances =
  (keys: Record<string, NewApiKey>): Script =>
  ({ method, path, headers }, reply) => {
    const secret = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    const key = keys[secret];
    if (!key)
      return reply.json(401, { error: { message: `invalid token ${secret}`, type: 'new_api_error' } });
    const { limit, used, isNewer = false, isUnlimited = false } = key;
    const shown = isUnlimited ? 100_000_000 : limit;
    if (method === 'GET' && !isNewer && path === '/v1/dashboard/billing/subscription')
      return reply.json(200, {
        object: 'billing_subscription',
        has_payment_method: true,
        soft_limit_usd: shown,
        hard_limit_usd: shown,
        system_hard_limit_usd: shown,
        access_until: 0,
      });
    if (method === 'GET' && !isNewer && path === '/v1/dashboard/billing/usage')
      return reply.json(200, { object: 'list', total_usage: used * 100 });
    if (method === 'GET' && path === '/api/usage/token/')
      return reply.json(200, {
        code: true,
        message: 'ok',
        data: {
          object: 'token_usage',
          total_granted: limit * quotaPerUnit,
          total_used: used * quotaPerUnit,
          total_available: (limit - used) * quotaPerUnit,
          unlimited_quota: isUnlimited,
          expires_at: 0,
        },
      });
    return reply.json(404, { error: { message: 'Invalid URL', type: 'invalid_request_error' } });
  };
