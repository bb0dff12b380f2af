import Stripe from 'stripe';
import type { Snapshot } from '../../shared/config/snapshot.ts';
import { nodeHmac } from '../../shared/adapters/system/node-ports.ts';
import { defaultSettings, type Settings, type StripeSettings } from '../../shared/config/settings.ts';
import {
  formatReferenceBody,
  formatTextToSign,
  addSignature,
  type PaymentReference,
} from '../../shared/billing/payments.ts';
import { formatYuan } from '../../shared/billing/money.ts';
import type { RelayResponse } from '../../shared/relay/http/http.ts';
import { createPaymentsHandle } from '../../shared/relay/payments/payments-handle.ts';
import type { RequestLog } from '../../shared/relay/ports/telemetry.ts';
import { expectDocumented } from '../openapi/exchange.ts';
import { MemoryAutoTopUps } from './memory-auto-top-ups.ts';
import { MemoryPaymentStore } from './memory-payment-store.ts';

export const stripe = new Stripe('sk_test_unused');

/** A delivery from Stripe's servers, signed by the official library. */
export interface Delivery {
  body: string;
  header: string | undefined;
}

type Json = Record<string, unknown>;

/** The function `payments` without its host, on an in-memory store, behind Stripe's double. */
export class StripeRig {
  readonly store = new MemoryPaymentStore(['acme', 'beta']);
  readonly topUps = new MemoryAutoTopUps();
  readonly logged: RequestLog[] = [];
  readonly events: { name: string; fields: Record<string, unknown> }[] = [];
  readonly counted: string[] = [];
  readonly faults: unknown[] = [];
  readonly secrets = new Map([
    ['ssm:/relay/relay/hook', 'whsec_one'],
    ['ssm:/relay/relay/hook-new', 'whsec_two'],
    ['ssm:/relay/relay/links', 'link secret'],
    ['ssm:/relay/relay/links-new', 'new link secret'],
  ]);
  secretReads = 0;
  nowMs = Date.UTC(2026, 10, 21);
  /** The settings of an environment that has not read the newest configuration yet. */
  olderSettings: StripeSettings | undefined;
  settings: StripeSettings | undefined = {
    live: true,
    webhookSecrets: ['ssm:/relay/relay/hook'],
    linkSecrets: ['ssm:/relay/relay/links'],
    rates: { usd: '7.1', jpy: '0.048', kwd: '23.123456', cny: '1' },
    unsigned: 'park',
  };
  bonus: Settings['topUpBonus'];
  random = (): number => 0.5;

  event(type: string, object: Json, changes: Json = {}): string {
    const created = Math.floor(this.nowMs / 1000);
    return JSON.stringify({
      id: 'evt_1',
      object: 'event',
      type,
      livemode: true,
      created,
      data: { object },
      ...changes,
    });
  }

  sign(body: string, { secret = 'whsec_one', timestamp = Math.floor(this.nowMs / 1000) } = {}): Delivery {
    return { body, header: stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }) };
  }

  async deliver({ body, header }: Delivery, path = '/hooks/payments/stripe'): Promise<RelayResponse> {
    const snapshotOf = async (stripeSettings: StripeSettings | undefined): Promise<Snapshot> => ({
      publishedAt: 0,
      channels: [],
      charges: [],
      models: [],
      plans: [],
      settings: {
        ...defaultSettings,
        topUpBonus: this.bonus,
        ...(stripeSettings && { payments: { stripe: stripeSettings } }),
      },
    });
    const handle = createPaymentsHandle({
      config: {
        current: () => snapshotOf(this.olderSettings ?? this.settings),
        notOlderThan: () => snapshotOf(this.settings),
      },
      secrets: {
        read: async (reference) => {
          this.secretReads += 1;
          const value = this.secrets.get(reference);
          if (value === undefined) throw new Error('no such secret');
          return value;
        },
      },
      payments: this.store,
      topUps: this.topUps,
      hmac: nodeHmac,
      clock: { now: () => this.nowMs, sleep: async (ms) => void (this.nowMs += ms) },
      random: { next: () => this.random() },
      log: {
        request: (entry) => this.logged.push(entry),
        event: (name, fields) => this.events.push({ name, fields }),
        fault: (_id, error) => this.faults.push(error),
      },
      metrics: { count: (name) => this.counted.push(name) },
    });
    const response = await handle({
      id: 'request-1',
      method: 'POST',
      path,
      query: new URLSearchParams(),
      headers: { 'stripe-signature': header },
      baseUrl: 'https://relay.example/v1',
      json: async () => undefined,
      rawBody: () => new TextEncoder().encode(body),
      hostDeadlineMs: this.nowMs + 30_000,
    });
    const { status, headers } = response;
    expectDocumented({ method: 'POST', path, status, headers, text: response.body as string });
    return response;
  }

  /** Delivers a signed event. @returns the status of the answer */
  async send(type: string, object: Json, changes: Json = {}): Promise<number> {
    return (await this.deliver(this.sign(this.event(type, object, changes)))).status;
  }

  /** The rows of `grants`, as `account id amount`. */
  get granted(): string[] {
    return [...this.store.grants.values()]
      .map(({ account, grant_id, amount }) => `${account} ${grant_id} ${formatYuan(amount)}`)
      .toSorted();
  }
}

/** A reference as `payment link` signs it. */
export function reference(changes: Partial<PaymentReference> = {}, secret = 'link secret'): string {
  const body = formatReferenceBody({
    account: 'acme',
    currency: 'usd',
    minor: 1000n,
    nonce: '0123456789abcdef',
    ...changes,
  });
  return addSignature(body, nodeHmac.sign(secret, formatTextToSign(body)));
}

/** The session of a paid checkout. */
export const session = (changes: Json = {}): Json => ({
  id: 'cs_live_1',
  object: 'checkout.session',
  mode: 'payment',
  payment_status: 'paid',
  payment_intent: 'pi_1',
  amount_total: 1000,
  currency: 'usd',
  client_reference_id: reference(),
  metadata: {},
  ...changes,
});

export const refund = (changes: Json = {}): Json => ({
  id: 're_1',
  object: 'refund',
  amount: 400,
  currency: 'usd',
  payment_intent: 'pi_1',
  status: 'succeeded',
  ...changes,
});

export const dispute = (changes: Json = {}): Json => ({
  id: 'dp_1',
  object: 'dispute',
  amount: 1000,
  currency: 'usd',
  payment_intent: 'pi_1',
  status: 'needs_response',
  ...changes,
});
