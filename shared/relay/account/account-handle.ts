/**
 * GET /v1/account and GET /v1/account/usage, for every usable key, also while the relay is closed. Every key
 * of an account can read the whole account. Responses must never be cached.
 */
import { admitKey, readKey, type AdmittedKey } from '../call/access.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import { matchRoute } from '../http/http-routes.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { asRefusal, refusalResponse } from '../http/refusal.ts';
import type { AccountReader } from '../ports/stores/account-reader.ts';
import type { Clock } from '../ports/clock.ts';
import { refusalAgeMsMax, type ConfigSource } from '../ports/stores/config-store.ts';
import type { KeyStore } from '../ports/stores/key-store.ts';
import type { RefusalCounts } from '../ports/stores/refusal-counts.ts';
import type { Log, RequestLog } from '../ports/telemetry.ts';
import { accountBody } from './account-balance.ts';
import { accountDays, readDays } from './account-days.ts';
import { usagePage } from './account-usage.ts';

/** How far back errors are shown. */
const errorsMs = 24 * 60 * 60_000;

export interface AccountPorts {
  config: ConfigSource;
  keys: KeyStore;
  accounts: AccountReader;
  refusals: Pick<RefusalCounts, 'since'>;
  clock: Clock;
  log: Log;
}

export function accountHandle(ports: AccountPorts): Handle {
  return async (request) => {
    const startedMs = ports.clock.now();
    /** What the checks have found so far; the log line of a refusal contains only this. */
    let found: Pick<RequestLog, 'endpoint' | 'key_hint' | 'account'> = { endpoint: 'account' };
    const logEnd = (end: Pick<RequestLog, 'status' | 'end' | 'code' | 'reason'>): void =>
      ports.log.request({
        request_id: request.id,
        ...found,
        ...end,
        duration_ms: ports.clock.now() - startedMs,
      });
    try {
      const endpoint = accountRoute(request);
      found = { endpoint };
      const admitted = await admit(ports, request);
      found = { endpoint, key_hint: admitted.row.hint, account: admitted.row.account };
      const body =
        endpoint === 'usage'
          ? await usagePage(ports.accounts, admitted.row.account, request.query)
          : await balance(ports, admitted, request.query);
      logEnd({ status: 200, end: 'completed' });
      return jsonAnswer(request, body);
    } catch (error) {
      const refusal = asRefusal(error);
      const { code } = refusal.body.error;
      if (code === 'internal') ports.log.fault(request.id, error);
      logEnd({ status: refusal.status, end: 'refused', code, reason: refusal.reason });
      return refusalResponse(refusal, request.id);
    }
  };
}

function accountRoute(request: RelayRequest): 'account' | 'usage' {
  const route = matchRoute(request);
  if (route === 'account' || route === 'usage') return route;
  throw refuseRoute(request);
}

async function admit({ keys, clock }: AccountPorts, request: RelayRequest): Promise<AdmittedKey> {
  const secretKey = readKey(request.headers['authorization']);
  return admitKey(await keys.find(secretKey), clock.now());
}

async function balance(
  ports: AccountPorts,
  { row: key, account }: AdmittedKey,
  query: URLSearchParams,
): Promise<object> {
  const nowMs = ports.clock.now();
  const asked = readDays(query);
  const [quota, snapshot, refusals, days] = await Promise.all([
    ports.accounts.quota(key.account),
    ports.config.notOlderThan(refusalAgeMsMax),
    ports.refusals.since(key.account, new Date(nowMs - errorsMs).toISOString().slice(0, 13)),
    asked === undefined
      ? undefined
      : accountDays(ports.accounts, { account: key.account, days: asked, nowMs }),
  ]);
  return accountBody({ account, quota, key, snapshot, refusals, days, nowMs: ports.clock.now() });
}

const jsonAnswer = (request: RelayRequest, body: object): RelayResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  },
  body: JSON.stringify(body),
  done: Promise.resolve(),
});
