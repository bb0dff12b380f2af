import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../../../shared/adapters/transport/sha256.ts';
import { localClientSettings } from '../host/identity.ts';
import type { Rule, VendorRequest } from './script/vendor.ts';

/** A request with what its signature says and what it should be. */
export interface SignedRequest {
  accessKey: string;
  region: string;
  service: string;
  /** The header as the vendor computes it. */
  expected?: string;
  found?: string;
  signedAt: number;
}

const { credentials } = localClientSettings('');

export async function readSignature(request: VendorRequest): Promise<SignedRequest> {
  const found = request.headers['authorization'];
  const [, scope = '', names = ''] =
    /^AWS4-HMAC-SHA256 Credential=(\S+), SignedHeaders=(\S+), /.exec(found ?? '') ?? [];
  const [accessKey = '', , region = '', service = ''] = scope.split('/');
  const signedAt = dateOf(request.headers['x-amz-date'] ?? '');
  const facts = { accessKey, region, service, signedAt, ...(found !== undefined && { found }) };
  if (accessKey === '' || Number.isNaN(signedAt)) return facts;
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const [hostname = ''] = (request.headers['host'] ?? '').split(':');
  const covered = names.split(';').filter((name) => !['x-amz-date', 'x-amz-content-sha256'].includes(name));
  const { headers } = await signer.sign(
    {
      method: request.method,
      protocol: 'http:',
      hostname,
      path: request.signedPath ?? request.path,
      query: {},
      headers: Object.fromEntries(covered.map((name) => [name, request.headers[name] ?? ''])),
      body: request.text,
    },
    { signingDate: new Date(signedAt) },
  );
  return { ...facts, ...(headers['authorization'] !== undefined && { expected: headers['authorization'] }) };
}

/** `20261122T000256Z` in milliseconds; NaN for anything else. */
const dateOf = (text: string): number =>
  Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

const source = 'https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html';
const minutes = 60_000;

/** In the order in which AWS looks. The refusal's type is the exception's name. */
export const signatureRules = (now: () => number): Rule<SignedRequest>[] => [
  {
    id: 'signed',
    says: 'A request is signed.',
    source,
    date: '2026-11-21',
    check: ({ expected }) =>
      expected === undefined && {
        status: 403,
        message: 'Missing Authentication Token',
        type: 'MissingAuthenticationTokenException',
      },
  },
  {
    id: 'access-key',
    says: 'The access key exists.',
    source,
    date: '2026-11-21',
    check: ({ accessKey }) =>
      accessKey !== credentials.accessKeyId && {
        status: 403,
        message: 'The security token included in the request is invalid.',
        type: 'UnrecognizedClientException',
      },
  },
  {
    id: 'scope',
    says: 'The signature is scoped to the service bedrock.',
    source,
    date: '2026-11-21',
    check: ({ service }) =>
      service !== 'bedrock' && {
        status: 403,
        message: "Credential should be scoped to correct service: 'bedrock'. ",
        type: 'InvalidSignatureException',
      },
  },
  {
    id: 'fresh',
    says: 'The signature is not older than five minutes.',
    source,
    date: '2026-11-21',
    check: ({ signedAt }) =>
      Math.abs(now() - signedAt) > 5 * minutes && {
        status: 403,
        message: `Signature expired: ${new Date(signedAt).toISOString()} is now earlier than ${new Date(now() - 5 * minutes).toISOString()}`,
        type: 'InvalidSignatureException',
      },
  },
  {
    id: 'signature',
    says: 'The signature covers the method, path, headers and body that arrived.',
    source,
    date: '2026-11-21',
    check: ({ expected, found }) =>
      expected !== found && {
        status: 403,
        message:
          'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.',
        type: 'InvalidSignatureException',
      },
  },
];
