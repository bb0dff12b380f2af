/** One request to CloudFormation's Query API, written by hand to avoid a client package for two of them. Never repeats one. */
import { systemClock } from '../system/system-clock.ts';
import type { AwsAccess } from '../system/environment.ts';
import { requestSigner } from './request-signer.ts';
import { textOf } from './xml-text.ts';

const timeoutMs = 10_000;

/** CloudFormation refused. */
export class StackRefusal extends Error {
  /** `AccessDenied`, `ValidationError` ... */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'StackRefusal';
    this.code = code;
  }
}

/**
 * @param parameters with the `Action`
 * @returns the answer's XML. Throws a StackRefusal, or the error of the network.
 */
export async function queryStacks(
  parameters: Record<string, string>,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  const { region } = aws;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const endpoint =
    environment['AWS_ENDPOINT_URL_CLOUDFORMATION'] ??
    environment['AWS_ENDPOINT_URL'] ??
    `https://cloudformation.${region}.${domain}`;
  const request = {
    url: `${endpoint}/`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ ...parameters, Version: '2010-05-15' }).toString(),
  };
  const sign = requestSigner({ aws, clock: systemClock });
  const headers = await sign(request, { service: 'cloudformation', region });
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { method: 'POST', headers, body: request.body, signal, redirect: 'manual' } as const;
  const reply = await fetch(request.url, options);
  const xml = await reply.text();
  if (reply.status === 200) return xml;
  throw new StackRefusal(textOf(xml, 'Code') ?? `status ${reply.status}`, textOf(xml, 'Message') ?? '');
}
