/**
 * Checks the header `Stripe-Signature`: `t=<Unix seconds>,v1=<hex>[,v1=<hex>...]`, where each v1 is the HMAC-SHA256 of
 * `<t>.<body>` under one of the endpoint's secrets. Must read nothing before the form and the time are right.
 * https://docs.stripe.com/webhooks#verify-manually
 */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { Hmac } from '../ports/hmac.ts';
import type { SecretStore } from '../ports/stores/secret-store.ts';
import { StoreUnavailable } from '../ports/stores/store-errors.ts';

/** Older signatures are refused, so that a recorded request cannot be sent again later. */
const toleranceSeconds = 300;
/** While secrets are rotated Stripe sends one signature for each. */
const signaturesMax = 10;

export interface SignedBody {
  header: string | undefined;
  body: Uint8Array;
  /** References of the secrets of which one must have signed. */
  secrets: readonly string[];
  nowMs: number;
}

interface SignaturePorts {
  hmac: Hmac;
  secrets: Pick<SecretStore, 'read'>;
}

/** Throws InvalidRequest, or StoreUnavailable when a secret that could be the right one cannot be read. */
export async function checkSignature(ports: SignaturePorts, signed: SignedBody): Promise<void> {
  const { time, signatures } = parseHeader(signed.header ?? '');
  if (Math.abs(signed.nowMs / 1000 - Number(time)) > toleranceSeconds)
    throw refused(`The signature is more than ${toleranceSeconds} seconds old, or from the future.`);
  const head = new TextEncoder().encode(`${time}.`);
  const message = new Uint8Array(head.length + signed.body.length);
  message.set(head);
  message.set(signed.body, head.length);
  if (!(await isSigned(ports, signed.secrets, { message, signatures })))
    throw refused('No signature is by a secret of this endpoint: compare the setting payments with Stripe.');
}

export interface SignedMessage {
  message: string | Uint8Array;
  signatures: readonly string[];
}

/** Whether one of the secrets signed. Throws StoreUnavailable if none did and one could not be read. */
export async function isSigned(
  { hmac, secrets }: SignaturePorts,
  references: readonly string[],
  { message, signatures }: SignedMessage,
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
    throw refused('The header Stripe-Signature is missing, or is not t=<seconds>,v1=<hex>.');
  return { time, signatures };
}

const refused = (message: string): InvalidRequest =>
  new InvalidRequest('invalid_signature', 'Stripe-Signature', message);
