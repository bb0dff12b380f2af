/**
 * POST /hooks/payments/stripe: Stripe reports payments, refunds and disputes. Without the setting `payments` the path
 * does not exist. Must answer 2xx only when what was reported is stored, because Stripe then forgets it.
 */
import type { StripeSettings } from '../../config/settings/settings.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { parseJson } from '../../wire/json-record.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { asRefusal, refusalResponse, refuse } from '../http/refusal.ts';
import type { ConfigSource } from '../ports/stores/config-store.ts';
import { paidFact, type PaidFactPorts } from './paid-fact.ts';
import { recordFact, type RecordPorts } from './record-fact.ts';
import { readStripeEvent, type StripeEvent } from './stripe-event.ts';
import { checkSignature } from './stripe-signature.ts';

export interface PaymentsPorts extends Omit<PaidFactPorts, 'payments'>, RecordPorts {
  config: ConfigSource;
}

export const stripePath = '/hooks/payments/stripe';
/** Stripe's events have some kilobytes. */
const bodyBytesMax = 256 * 1024;

export function paymentsHandle(ports: PaymentsPorts): Handle {
  return async (request) => {
    const startedMs = ports.clock.now();
    const logEnd = (
      status: number,
      end: string,
      more: { code?: string; reason?: string | undefined } = {},
    ): void =>
      ports.log.request({
        request_id: request.id,
        endpoint: 'payments',
        status,
        end,
        duration_ms: ports.clock.now() - startedMs,
        ...more,
      });
    try {
      const event = await readEvent(ports, request);
      const stored = await store(ports, event);
      logEnd(200, 'completed', { reason: stored ? undefined : 'ignored' });
      return answer(request);
    } catch (error) {
      const refusal = asRefusal(error);
      const { code } = refusal.body.error;
      if (refusal.status >= 500) ports.log.fault(request.id, error);
      logEnd(refusal.status, refusal.status >= 500 ? 'failed' : 'refused', { code, reason: refusal.reason });
      return refusalResponse(refusal, request.id);
    }
  };
}

interface ReceivedEvent extends StripeEvent {
  settings: StripeSettings;
}

async function readEvent(ports: PaymentsPorts, request: RelayRequest): Promise<ReceivedEvent> {
  const settings = (await ports.config.current()).settings.payments?.stripe;
  if (!settings || request.path !== stripePath || request.method !== 'POST') throw refuseRoute(request);
  const body = bytesOf(request);
  const header = request.headers['stripe-signature'];
  const { webhookSecrets: secrets } = settings;
  await checkSignature(ports, { header, body, secrets, nowMs: ports.clock.now() });
  const json = parseJson(new TextDecoder().decode(body));
  if (json === undefined) throw new InvalidRequest('invalid_json', null, 'The body is not valid JSON.');
  return { ...readStripeEvent(json), settings };
}

function bytesOf(request: RelayRequest): Uint8Array {
  const body = request.rawBody();
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  if (bytes.length > bodyBytesMax)
    throw refuse(
      'request_too_large',
      `The body has ${bytes.length} bytes; at most ${bodyBytesMax} are accepted.`,
    );
  return bytes;
}

/** @returns false if the event reports nothing that counts here */
async function store(ports: PaymentsPorts, { live, at, reports, settings }: ReceivedEvent): Promise<boolean> {
  // Test payments are no money. Real ones that a relay in test mode gets are kept for an operator.
  if (!live && settings.live) return false;
  let isStored = false;
  for (const report of reports) {
    const fact =
      report.kind === 'checkout'
        ? await paidFact(ports, { ...report, live, at }, settings)
        : { ...report, at };
    if (!fact) continue;
    await recordFact(ports, fact);
    isStored = true;
  }
  return isStored;
}

const answer = (request: RelayRequest): RelayResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-request-id': request.id },
  body: JSON.stringify({ received: true }),
  done: Promise.resolve(),
});
