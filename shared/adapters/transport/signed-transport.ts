/**
 * Signs requests with AWS Signature Version 4 when they ask for it; the others go as they are. The signer loads with the
 * first request that needs it.
 */
import type { Clock } from '../../relay/ports/clock.ts';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import type { AwsScope, UpstreamRequest } from '../../upstreams/exchange.ts';
import type { AwsAccess } from '../system/environment.ts';

export interface SigningParts {
  transport: UpstreamTransport;
  /** The credentials of the function's own role. */
  aws: AwsAccess;
  clock: Clock;
}

export function signedTransport({ transport, aws, clock }: SigningParts): UpstreamTransport {
  return {
    async send(request, signal) {
      const { awsScope, ...plain } = request;
      if (!awsScope) return transport.send(plain, signal);
      const signedAt = new Date(clock.now());
      return transport.send({ ...plain, headers: await sign(plain, awsScope, aws, signedAt) }, signal);
    },
  };
}

/** The request's headers with those of its signature. `host` is signed as Node will write it. */
async function sign(
  { url, headers, body }: UpstreamRequest,
  { service, region }: AwsScope,
  { credentials }: AwsAccess,
  signedAt: Date,
): Promise<Record<string, string>> {
  const [{ SignatureV4 }, { Sha256 }] = await Promise.all([
    import('@smithy/signature-v4'),
    import('./sha256.ts'),
  ]);
  const { protocol, hostname, host, pathname, searchParams } = new URL(url);
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const signed = await signer.sign(
    {
      method: 'POST',
      protocol,
      hostname,
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: { ...headers, host },
      body,
    },
    { signingDate: signedAt },
  );
  const { host: _host, ...sent } = signed.headers;
  return sent;
}
