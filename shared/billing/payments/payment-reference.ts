/**
 * The reference that a checkout carries: which account a payment is for, and how much of what it asks for. It is signed,
 * because whoever opens a checkout can change what stands in its address.
 */
import type { PaymentAmount } from './payment-amount.ts';

export interface PaymentReference extends PaymentAmount {
  account: string;
  /** Sets references of equal content apart. */
  nonce: string;
}

/** Stripe drops a `client_reference_id` that is longer, or that has other characters than letters, digits, - and _. */
export const referenceLengthMax = 200;

const form = /^([0-9a-f]{64})-(([a-z]{3})-(\d{1,15})-([0-9a-f]{16})-([A-Za-z0-9_-]+))$/;

/** The part of a reference that its signature covers. */
export const referenceBody = ({ account, currency, minor, nonce }: PaymentReference): string =>
  `${currency}-${minor}-${nonce}-${encodedAccount(account)}`;

/** What is signed. The first line keeps a signature from meaning anything elsewhere. */
export const signedReference = (body: string): string => `relay payment reference 1\n${body}`;

export const withSignature = (body: string, signature: string): string => `${signature}-${body}`;

export interface SignedReference {
  reference: PaymentReference;
  /** Not checked yet. */
  signature: string;
  body: string;
}

/** Undefined: it is none of our references. */
export function parseReference(text: string): SignedReference | undefined {
  const [, signature, body, currency, minor, nonce, encoded] = form.exec(text) ?? [];
  if (!signature || !body || !currency || !minor || !nonce || !encoded) return undefined;
  const account = decodedAccount(encoded);
  if (account === undefined) return undefined;
  return { reference: { account, currency, minor: BigInt(minor), nonce }, signature, body };
}

/** Letters, digits and - stay; every other byte becomes `_` and two hex digits. */
const encodedAccount = (account: string): string =>
  encodeURIComponent(account)
    .replaceAll(/[_.!~*'()]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%', '_');

function decodedAccount(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('_', '%'));
  } catch {
    return undefined;
  }
}
