import { SignatureV4 } from '@smithy/signature-v4';
import { createVendorDoubles } from '../../../infra/local/vendors/vendors.ts';
import type { Vendor, VendorReply } from '../../../infra/local/vendors/vendor.ts';
import { Sha256 } from '../../support/sha256.ts';

export type Json = Record<string, unknown>;

/** A request to a double: a body, and anything unusual beside it. */
export interface Sent {
  body: unknown;
  path?: string;
  headers?: Record<string, string>;
  /** Signs for Bedrock, with a deliberate mistake. */
  signed?: { accessKey?: string; secret?: string; service?: string; region?: string; at?: number } | false;
}

export function doubleOf(name: string): Vendor {
  const found = createVendorDoubles().find((vendor) => vendor.name === name);
  if (!found) throw new Error(name);
  return found;
}

const paths: Record<string, string> = {
  openai: '/v1/chat/completions',
  gemini: '/v1beta/openai/chat/completions',
  deepseek: '/chat/completions',
  anthropic: '/v1/messages',
  bedrock: '/anthropic/v1/messages',
  picky: '/v1/chat/completions',
};

export async function send(vendor: Vendor, sent: Sent): Promise<VendorReply> {
  const { body, path = paths[vendor.name] ?? '', headers: own = {}, signed = {} } = sent;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const known = { ...(vendor.name === 'anthropic' || vendor.name === 'bedrock' ? claude : {}), ...own };
  const headers =
    vendor.name === 'bedrock' && signed ? await sign({ path, text, headers: known }, signed) : known;
  return vendor.serve({ method: 'POST', path, headers, text });
}

const claude = { 'anthropic-version': '2023-06-01' };

async function sign(
  { path, text, headers }: { path: string; text: string; headers: Record<string, string> },
  { accessKey = 'local', secret = 'local', service = 'bedrock', region = 'us-east-1', at = Date.now() },
): Promise<Record<string, string>> {
  const credentials = { accessKeyId: accessKey, secretAccessKey: secret };
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const request = {
    method: 'POST',
    protocol: 'http:',
    hostname: '127.0.0.1',
    path,
    headers: { ...headers, host: '127.0.0.1' },
    body: text,
  };
  return (await signer.sign(request, { signingDate: new Date(at) })).headers;
}

export const textOf = ({ frames }: VendorReply): string =>
  frames.map((frame) => (typeof frame === 'string' ? frame : Buffer.from(frame).toString('latin1'))).join('');

export const jsonOf = (reply: VendorReply): Json => JSON.parse(textOf(reply)) as Json;
