/**
 * Finds the base URL of a relay: locally that of the distribution's emulator, otherwise an output of the
 * deployed stack.
 */
import { systemClock } from '../system/system-clock.ts';
import type { AwsAccess } from '../system/environment.ts';
import { requestSigner } from './request-signer.ts';

const timeoutMs = 10_000;
const defaultPort = '8787';

export interface StackAddress {
  stack: string;
  local: boolean;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment has no region or no credentials. */
  aws(): Promise<AwsAccess>;
}

/** @returns undefined when it cannot be read, e.g. without permission to describe stacks */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  if (address.local) return `http://127.0.0.1:${address.environment['PORT'] ?? defaultPort}/v1`;
  return describeStack(address).then(baseUrlIn, () => undefined);
}

/**
 * One request to CloudFormation's Query API. Written by hand to avoid a client package for a single request.
 */
async function describeStack({ stack, environment, ...address }: StackAddress): Promise<string> {
  const aws = await address.aws();
  const { region } = aws;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const endpoint =
    environment['AWS_ENDPOINT_URL_CLOUDFORMATION'] ?? `https://cloudformation.${region}.${domain}`;
  const request = {
    url: `${endpoint}/`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `Action=DescribeStacks&StackName=${stack}&Version=2010-05-15`,
  };
  const sign = requestSigner({ aws, clock: systemClock });
  const headers = await sign(request, { service: 'cloudformation', region });
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { method: 'POST', headers, body: request.body, signal, redirect: 'manual' } as const;
  const reply = await fetch(request.url, options);
  if (reply.status !== 200) throw new Error(`status ${reply.status}`);
  return reply.text();
}

function baseUrlIn(xml: string): string | undefined {
  const outputs = xml.match(/<member>((?:(?!<member>).)*?<OutputKey>.*?)<\/member>/gs) ?? [];
  const output = outputs.find((each) => each.includes('<OutputKey>BaseUrl</OutputKey>')) ?? '';
  return /<OutputValue>(https:\/\/[^<\s]+)<\/OutputValue>/.exec(output)?.[1];
}
