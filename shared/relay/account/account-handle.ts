import { admitKey, readKey } from '../call/access.ts';
import { accountBody } from './account-balance.ts';
import type { AccountReader } from '../ports/account-reader.ts';
import { usagePage } from './account-usage.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log, RequestLog } from '../ports/telemetry.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { ConfigSource } from '../ports/config-store.ts';
import { asRefusal, refusalResponse } from '../http/refusal.ts';
import { matchRoute, refuseRoute } from '../http/http-routes.ts';

export interface AccountPorts {
  config: ConfigSource;
  keys: KeyStore;
  accounts: AccountReader;
  clock: Clock;
  log: Log;
}

/**
 * GET /v1/account and GET /v1/account/usage, for any key that could chat, also while the relay is closed. Every key
 * of an account sees the whole account. Never cached.
 */
export function accountHandle(ports: AccountPorts): Handle {
  return async (request) => {
    const startedMs = ports.clock.now();
    const record: RequestLog = {
      request_id: request.id,
      endpoint: 'account',
      status: 200,
      end: 'completed',
      duration_ms: 0,
    };
    const response = await serve(ports, request, record).catch((error: unknown) => {
      const refusal = asRefusal(error);
      const { code } = refusal.body.error;
      if (code === 'internal') ports.log.fault(request.id, error);
      Object.assign(record, { status: refusal.status, end: 'refused', code, reason: refusal.reason });
      return refusalResponse(refusal, request.id);
    });
    record.duration_ms = ports.clock.now() - startedMs;
    ports.log.request(record);
    return response;
  };
}

async function serve(ports: AccountPorts, request: RelayRequest, record: RequestLog): Promise<RelayResponse> {
  const route = matchRoute(request);
  if (route !== 'account' && route !== 'usage') throw refuseRoute(request);
  record.endpoint = route;
  const secretKey = readKey(request.headers['authorization']);
  const admitted = admitKey(await ports.keys.find(secretKey), ports.clock.now());
  const { row: key, account: row } = admitted;
  record.key_hint = key.hint;
  record.account = key.account;
  if (route === 'usage') return answer(request, await usagePage(ports.accounts, key.account, request.query));
  const [quota, snapshot] = await Promise.all([ports.accounts.quota(key.account), ports.config.current()]);
  const facts = { account: row, quota, key, snapshot, nowMs: ports.clock.now() };
  return answer(request, accountBody(facts));
}

const answer = (request: RelayRequest, body: object): RelayResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  },
  body: JSON.stringify(body),
  done: Promise.resolve(),
});
