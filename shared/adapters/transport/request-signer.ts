/**
 * AWS Signature Version 4 for upstreams that authenticate by the function's own role. The SDK's signer is
 * imported at the first request that needs it.
 */
import type { Clock } from '../../relay/ports/host.ts';
import type { AwsScope, UpstreamRequest } from '../../upstreams/exchange.ts';
import type { AwsAccess } from '../system/environment.ts';

/** Returns the request's headers together with those of its signature. */
export type RequestSigner = (
  request: Pick<UpstreamRequest, 'method' | 'url' | 'headers' | 'body'>,
  scope: AwsScope,
) => Promise<Record<string, string>>;

export interface SigningParts {
  /** The credentials of the function's own role. */
  aws: AwsAccess;
  clock: Pick<Clock, 'now'>;
}

export const requestSigner =
  ({ aws: { credentials }, clock }: SigningParts): RequestSigner =>
  async ({ method = 'POST', url, headers, body }, { service, region }) => {
    const [{ SignatureV4 }, { Sha256 }] = await Promise.all([
      import('@smithy/signature-v4'),
      import('./sha256.ts'),
    ]);
    const { protocol, hostname, host, pathname, searchParams } = new URL(url);
    const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
    const signed = await signer.sign(
      {
        method,
        protocol,
        hostname,
        path: pathname,
        query: Object.fromEntries(searchParams),
        // The `host` header that Node will send.
        headers: { ...headers, host },
        body,
      },
      { signingDate: new Date(clock.now()) },
    );
    const { host: _host, ...sent } = signed.headers;
    return sent;
  };
