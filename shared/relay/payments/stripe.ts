/**
 * Reads an event of Stripe, if it is one of those that count. Several events report the same payment, in any
 * order; ids of payments, refunds and disputes make them one. Must guess nothing: an odd event of a type that counts is
 * refused, so that Stripe keeps it.
 * https://docs.stripe.com/api/events/types
 */
import type { StoredCard } from '../../billing/auto-top-up.ts';
import type { PaymentAmount, Reversal, ReversalFact } from '../../billing/payments.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { asRecord, isRecord, type JsonRecord } from '../../wire/json.ts';
import type { Hmac } from '../ports/host.ts';
import type { SecretStore } from '../ports/config-store.ts';
import { StoreUnavailable } from '../ports/store-errors.ts';

export interface PaidCheckout {
  kind: 'checkout';
  payment: string;
  paid: PaymentAmount;
  /** false: the checkout is no single payment, such as a subscription. */
  isSingle: boolean;
  /** Texts of which one may be a reference of ours. */
  references: string[];
  card?: StoredCard | undefined;
}

export interface StripeEvent {
  live: boolean;
  /** When it happened: ISO 8601. */
  at: string;
  reports: Report[];
}

type Report = PaidCheckout | Omit<ReversalFact, 'at'>;

/** Stripe reports a checkout as paid in the first of these, or in the second where the money takes days. */
const readers: Record<string, (object: JsonRecord) => Report[]> = {
  'checkout.session.completed': readPaidCheckout,
  'checkout.session.async_payment_succeeded': readPaidCheckout,
  'payment_intent.succeeded': readPaidIntent,
  'refund.created': refund,
  'refund.updated': refund,
  'refund.failed': refund,
  'charge.refund.updated': refund,
  'charge.refunded': readRefunds,
  'charge.dispute.created': readDispute,
  'charge.dispute.updated': readDispute,
  'charge.dispute.closed': readDispute,
  'charge.dispute.funds_withdrawn': readDispute,
  'charge.dispute.funds_reinstated': readDispute,
};

/** Throws InvalidRequest for an event without the form of its type. */
export function readStripeEvent(json: unknown): StripeEvent {
  const { type, livemode: live, created, account, data } = asRecord(json);
  if (typeof type !== 'string') throw refuseField('type');
  if (typeof live !== 'boolean') throw refuseField('livemode');
  if (typeof created !== 'number' || !(created >= 0 && created < 1e11)) throw refuseField('created');
  const at = isoTime(created * 1000);
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined;
  // Events of connected accounts name them: what was paid there is not the operator's.
  if (!reader || typeof account === 'string') return { live, at, reports: [] };
  const { object } = asRecord(data);
  if (!isRecord(object)) throw refuseField('data.object');
  return { live, at, reports: reader(object) };
}

function readPaidCheckout(session: JsonRecord): Report[] {
  const { payment_status, payment_intent, client_reference_id, metadata, mode } = session;
  if (payment_status !== 'paid') return [];
  const paid = amountOf(session, 'amount_total');
  if (paid.minor === 0n) return [];
  const texts = [client_reference_id, asRecord(metadata)['relay_reference']];
  return [
    {
      kind: 'checkout',
      payment: payment_intent === null ? idOf(session, 'id') : idOf(session, 'payment_intent'),
      paid,
      isSingle: mode === 'payment' && payment_intent !== null,
      references: texts.filter((text) => typeof text === 'string'),
    },
  ];
}

/** Only automatic top-ups and payments that store a card have a reference here. Checkouts report the latter, too. */
function readPaidIntent(intent: JsonRecord): Report[] {
  const reference = asRecord(intent['metadata'])['relay_reference'];
  if (typeof reference !== 'string') return [];
  const { customer, payment_method: method } = intent;
  const isStored = typeof customer === 'string' && typeof method === 'string';
  return [
    {
      kind: 'checkout',
      payment: idOf(intent, 'id'),
      paid: amountOf(intent, 'amount_received'),
      isSingle: true,
      references: [reference],
      card: isStored ? { customer, method } : undefined,
    },
  ];
}

/** A refund that is still under way has left the balance at Stripe; one that fails comes back. */
function refund(object: JsonRecord): Report[] {
  const { status } = object;
  const state = status === 'failed' || status === 'canceled' ? 'returned' : 'taken';
  return reversalOf(object, 'refund', state);
}

/** Only old versions of Stripe's API list the refunds here; refund events report them in all others. */
function readRefunds({ refunds }: JsonRecord): Report[] {
  const { data } = asRecord(refunds);
  return Array.isArray(data) ? data.flatMap((each) => refund(asRecord(each))) : [];
}

/** A dispute takes the money when it opens. An inquiry (`warning_...`) takes none. */
function readDispute(object: JsonRecord): Report[] {
  const { status } = object;
  if (typeof status !== 'string') throw refuseField('data.object.status');
  if (status.startsWith('warning_')) return [];
  return reversalOf(object, 'dispute', status === 'won' || status === 'prevented' ? 'returned' : 'taken');
}

function reversalOf(object: JsonRecord, kind: Reversal['kind'], state: Reversal['state']): Report[] {
  const { payment_intent } = object;
  // Checkouts always have one; the money of anything else was never granted.
  if (payment_intent === null || payment_intent === undefined) return [];
  const amount = amountOf(object, 'amount');
  if (amount.minor === 0n) return [];
  const payment = idOf(object, 'payment_intent');
  return [{ kind: 'reversal', payment, id: idOf(object, 'id'), reversal: { kind, state, ...amount } }];
}

function amountOf(object: JsonRecord, name: string): PaymentAmount {
  const { [name]: minor, currency } = object;
  if (typeof minor !== 'number' || !Number.isSafeInteger(minor) || minor < 0)
    throw refuseField(`data.object.${name}`);
  if (typeof currency !== 'string' || !/^[a-z]{3}$/.test(currency)) throw refuseField('data.object.currency');
  return { minor: BigInt(minor), currency };
}

/** Ids become parts of ledger ids, so their form is checked although the event is signed. */
function idOf(object: JsonRecord, name: string): string {
  const { [name]: id } = object;
  if (typeof id !== 'string' || !/^[A-Za-z]{2,8}_[A-Za-z0-9_]{1,150}$/.test(id))
    throw refuseField(`data.object.${name}`);
  return id;
}

const refuseField = (param: string): InvalidRequest =>
  new InvalidRequest(
    'invalid_event',
    param,
    `The event's ${param} does not have the form that Stripe documents.`,
  );

// Checks the header `Stripe-Signature`: `t=<Unix seconds>,v1=<hex>[,v1=<hex>...]`, where each v1 is the HMAC-SHA256 of
// `<t>.<body>` under one of the endpoint's secrets. Must read nothing before the form and the time are right.
// https://docs.stripe.com/webhooks#verify-manually

/** Older signatures are refused, so that a recorded request cannot be sent again later. */
const toleranceSeconds = 300;
/** While secrets are rotated Stripe sends one signature for each. */
const signaturesMax = 10;

interface SignaturePorts {
  hmac: Hmac;
  secrets: Pick<SecretStore, 'read'>;
}

/**
 * Throws InvalidRequest, or StoreUnavailable when a secret that could be the right one cannot be read.
 * @param secrets references of those of which one must have signed
 */
export async function checkSignature(
  ports: SignaturePorts,
  {
    header = '',
    body,
    secrets,
    nowMs,
  }: { header: string | undefined; body: Uint8Array; secrets: readonly string[]; nowMs: number },
): Promise<void> {
  const { time, signatures } = parseHeader(header);
  if (Math.abs(nowMs / 1000 - Number(time)) > toleranceSeconds)
    throw refuseSignature(`The signature is more than ${toleranceSeconds} seconds old, or from the future.`);
  const head = new TextEncoder().encode(`${time}.`);
  const message = new Uint8Array(head.length + body.length);
  message.set(head);
  message.set(body, head.length);
  if (!(await isSigned(ports, secrets, { message, signatures })))
    throw refuseSignature(
      'No signature matches a secret of this endpoint: compare the setting payments with Stripe.',
    );
}

/** Checks the signature against all secrets. Throws StoreUnavailable if none fits and one could not be read. */
export async function isSigned(
  { hmac, secrets }: SignaturePorts,
  references: readonly string[],
  { message, signatures }: { message: string | Uint8Array; signatures: readonly string[] },
): Promise<boolean> {
  let unread: unknown;
  for (const reference of references) {
    try {
      if (hmac.matches(await secrets.read(reference), message, signatures)) return true;
    } catch (error) {
      unread = error;
    }
  }
  if (unread !== undefined) throw new StoreUnavailable('A secret cannot be read.', { cause: unread });
  return false;
}

function parseHeader(header: string): { time: string; signatures: string[] } {
  const parts = header.split(',').map((part) => part.trim());
  const time = parts.find((part) => /^t=\d{1,12}$/.test(part))?.slice(2);
  const signatures = parts.filter((part) => /^v1=[0-9a-f]{64}$/.test(part)).map((part) => part.slice(3));
  if (time === undefined || signatures.length === 0 || signatures.length > signaturesMax)
    throw refuseSignature('The header Stripe-Signature is missing, or is not t=<seconds>,v1=<hex>.');
  return { time, signatures };
}

const refuseSignature = (message: string): InvalidRequest =>
  new InvalidRequest('invalid_signature', 'Stripe-Signature', message);
