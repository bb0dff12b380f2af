import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { stripe } from './stripe-rig.ts';

type Json = Record<string, unknown>;

interface Reply {
  status: number;
  json: Json;
}

/**
 * The parts of Stripe that the relay uses: checkout sessions, off-session payment intents, idempotency keys that replay
 * status and body and reject another body, declines by card, and signed events. https://docs.stripe.com/api
 */
export class StripeDouble {
  endpoint = '';
  /** All requests, including replays. */
  readonly asked: { path: string; key: string; form: URLSearchParams }[] = [];
  readonly sessions = new Map<string, URLSearchParams>();
  /** Successful payments. */
  readonly charged: { id: string; account: string; amount: number }[] = [];
  /** Every event that Stripe would send, in order. */
  readonly events: { type: string; object: Json }[] = [];
  /** Error codes by payment method. */
  readonly declines = new Map<string, string>();
  /** The number of next replies that are lost after the work is done. */
  lose = 0;
  /** The status of the next requests, which do no work. */
  failing: number | undefined;
  readonly #replies = new Map<string, { body: string; reply: Reply }>();
  readonly #server: Server;
  readonly #live: boolean;
  /** Called before money is taken. */
  beforeCharge: (amount: number) => void = () => {};
  #ids = 0;

  constructor({ live = true } = {}) {
    this.#live = live;
    this.#server = createServer((request, response) => {
      void text(request).then((body) => {
        const key = String(request.headers['idempotency-key']);
        const { status, json } = this.answer(request.url ?? '', key, body);
        if (this.lose > 0) {
          this.lose -= 1;
          response.destroy();
          return;
        }
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
      });
    });
  }

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    this.endpoint = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Pays a session with a customer's card. */
  pay(session: string, card = 'pm_good'): void {
    const form = this.sessions.get(session) ?? new URLSearchParams();
    const { amount, reference } = readSession(form);
    const stores = form.get('payment_intent_data[setup_future_usage]') === 'off_session';
    const metadata = { relay_reference: form.get('payment_intent_data[metadata][relay_reference]') };
    const intent = this.#succeed(amount, reference, {
      currency: form.get('line_items[0][price_data][currency]'),
      customer: stores ? `cus_${session}` : null,
      payment_method: card,
      metadata: stores ? metadata : {},
    });
    this.events.push({
      type: 'checkout.session.completed',
      object: {
        id: session,
        mode: 'payment',
        payment_status: 'paid',
        payment_intent: intent['id'],
        amount_total: amount,
        currency: intent['currency'],
        client_reference_id: reference,
        metadata: {},
      },
    });
  }

  /** Delivers all events of the payment so far in this order, signed with the endpoint's secret. */
  async deliver(url: string, secret: string, events = this.events): Promise<number[]> {
    const statuses: number[] = [];
    for (const { type, object } of events) {
      const created = Math.floor(Date.now() / 1000);
      const payload = JSON.stringify({ id: 'evt_1', type, livemode: this.#live, created, data: { object } });
      const header = stripe.webhooks.generateTestHeaderString({ payload, secret });
      const headers = { 'stripe-signature': header, 'content-type': 'application/json' };
      statuses.push((await fetch(url, { method: 'POST', headers, body: payload })).status);
    }
    return statuses;
  }

  /** Answers without a server, for a transport in virtual time. */
  answer(path: string, key: string, body: string): Reply {
    this.asked.push({ path, key, form: new URLSearchParams(body) });
    if (this.failing !== undefined) return { status: this.failing, json: {} };
    const earlier = this.#replies.get(key);
    if (earlier)
      return earlier.body === body
        ? earlier.reply
        : { status: 400, json: { error: { type: 'idempotency_error' } } };
    const form = new URLSearchParams(body);
    const reply = path === '/v1/payment_intents' ? this.#charge(form) : this.#open(form);
    this.#replies.set(key, { body, reply });
    return reply;
  }

  #open(form: URLSearchParams): Reply {
    const id = `cs_${(this.#ids += 1)}`;
    this.sessions.set(id, form);
    const client_reference_id = form.get('client_reference_id');
    const url = `https://checkout.example/${id}`;
    return { status: 200, json: { id, livemode: this.#live, client_reference_id, url } };
  }

  #charge(form: URLSearchParams): Reply {
    const card = form.get('payment_method') ?? '';
    const code = this.declines.get(card);
    if (code !== undefined) {
      const id = `pi_${(this.#ids += 1)}`;
      const error = { type: 'card_error', code, payment_intent: { id, status: 'requires_payment_method' } };
      return { status: 402, json: { error } };
    }
    const relay_reference = form.get('metadata[relay_reference]') ?? '';
    const json = this.#succeed(Number(form.get('amount')), relay_reference, {
      currency: form.get('currency'),
      customer: form.get('customer'),
      payment_method: card,
      metadata: { relay_reference },
    });
    return { status: 200, json };
  }

  #succeed(amount: number, reference: string, facts: Json): Json {
    this.beforeCharge(amount);
    const id = `pi_${(this.#ids += 1)}`;
    this.charged.push({ id, account: reference.split('-').slice(4).join('-'), amount });
    const livemode = this.#live;
    const object = { id, livemode, status: 'succeeded', amount, amount_received: amount, ...facts };
    this.events.push({ type: 'payment_intent.succeeded', object });
    return object;
  }
}

const readSession = (form: URLSearchParams) => ({
  amount: Number(form.get('line_items[0][price_data][unit_amount]')),
  reference: form.get('client_reference_id') ?? '',
});
