/**
 * Signs requests with AWS Signature Version 4. A secret must only ever enter the signing key.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { Clock } from '../../relay/ports/host.ts';
import type { AwsScope, UpstreamRequest } from '../../upstreams/exchange.ts';
import type { AwsAccess, AwsCredentials } from '../system/environment.ts';

export interface RequestToSign {
  method?: string | undefined;
  host: string;
  path: string;
  query?: URLSearchParams;
  headers: Record<string, string>;
  body: string;
  credentials: AwsCredentials;
  atMs: number;
}

/** Returns the headers to add to a request. Caches the signing key of a day. */
export function createSigner(
  service: string,
  region: string,
): (request: RequestToSign) => Record<string, string> {
  let cachedKey: { of: string; key: KeyObject } | undefined;
  const deriveKey = (secret: string, day: string): KeyObject => {
    const of = `${day} ${secret}`;
    if (cachedKey?.of !== of) {
      const steps = [day, region, service, 'aws4_request'];
      // Importing the key for each request takes eight times as long.
      cachedKey = { of, key: createSecretKey(steps.reduce(computeHmac, Buffer.from(`AWS4${secret}`))) };
    }
    return cachedKey.key;
  };
  return ({ method = 'POST', host, path, query, headers, body, credentials, atMs }) => {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const date = new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const day = date.slice(0, 8);
    const scope = `${day}/${region}/${service}/aws4_request`;
    const added = { 'x-amz-date': date, ...(sessionToken && { 'x-amz-security-token': sessionToken }) };
    const lines = Object.entries({ host, ...headers, ...added })
      .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/\s+/g, ' ')] as const)
      .filter(([name]) => !unsignedHeaders.test(name))
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const names = lines.map(([name]) => name).join(';');
    const head = lines.map(([name, value]) => `${name}:${value}\n`).join('');
    const canonicalRequest = `${method}\n${encodePath(path)}\n${encodeQuery(query)}\n${head}\n${names}\n${hash('sha256', body)}`;
    const text = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash('sha256', canonicalRequest)}`;
    const signature = computeHmac(deriveKey(secretAccessKey, day), text).toString('hex');
    return {
      ...added,
      authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
    };
  };
}

/** Proxies and clients change these headers. */
const unsignedHeaders = /^(authorization|connection|expect|te|upgrade|user-agent|x-amzn-trace-id)$/;

const computeHmac = (key: Buffer | KeyObject, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

const percentEncode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** Every service but S3 signs the path encoded twice. */
const encodePath = (path: string): string =>
  path === '/' ? path : percentEncode(path.replace(/\/+/g, '/')).replaceAll('%2F', '/');

const encodeQuery = (query: URLSearchParams | undefined): string =>
  query === undefined
    ? ''
    : [...query]
        .map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`)
        .toSorted()
        .join('&');

export type RequestSigner = (
  request: Pick<UpstreamRequest, 'method' | 'url' | 'headers' | 'body'>,
  scope: AwsScope,
) => Promise<Record<string, string>>;

export interface SigningDeps {
  aws: AwsAccess;
  clock: Pick<Clock, 'now'>;
}

const credentialsMsMax = 10_000;

export const createRequestSigner =
  ({ aws: { credentials: given }, clock }: SigningDeps): RequestSigner =>
  async ({ method, url, headers, body }, { service, region }) => {
    const credentials = 'current' in given ? await given.current(credentialsMsMax) : given;
    const { host, pathname: path, searchParams: query } = new URL(url);
    const request = { method, host, path, query, headers, body, credentials, atMs: clock.now() };
    return { ...headers, ...createSigner(service, region)(request) };
  };
