/** Where clients reach a relay: locally its distribution's emulator, else an output of the deployed stack. */
import { text } from 'node:stream/consumers';
import { systemClock } from '../system/system-clock.ts';
import type { AwsAccess } from '../system/environment.ts';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import { signedTransport } from './signed-transport.ts';

const timeoutMs = 10_000;
const defaultPort = '8787';

export interface StackAddress {
  stack: string;
  local: boolean;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment names no region or no credentials. */
  aws(): Promise<AwsAccess>;
}

/** @returns undefined when it cannot be read: who may not describe stacks knows the address otherwise */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  if (address.local) return `http://127.0.0.1:${address.environment['PORT'] ?? defaultPort}/v1`;
  return describeStack(address).then(baseUrlIn, () => undefined);
}

/** One request of CloudFormation's Query interface: a whole client of it would be a package for this alone. */
async function describeStack({ stack, environment, ...address }: StackAddress): Promise<string> {
  const aws = await address.aws();
  const { region } = aws;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const endpoint =
    environment['AWS_ENDPOINT_URL_CLOUDFORMATION'] ?? `https://cloudformation.${region}.${domain}`;
  const transport = signedTransport({ transport: fetchTransport, aws, clock: systemClock });
  const request = {
    url: `${endpoint}/`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `Action=DescribeStacks&StackName=${stack}&Version=2010-05-15`,
    connectTimeoutMs: timeoutMs,
    awsScope: { service: 'cloudformation', region },
  };
  return text((await transport.send(request, AbortSignal.timeout(timeoutMs))).body);
}

const fetchTransport: UpstreamTransport = {
  async send({ url, headers, body }, signal) {
    const { status, body: reply } = await fetch(url, {
      method: 'POST',
      headers,
      body,
      signal,
      redirect: 'manual',
    });
    if (status !== 200 || !reply) throw new Error(`status ${status}`);
    return { status, headers: {}, body: reply };
  },
};

function baseUrlIn(xml: string): string | undefined {
  const outputs = xml.match(/<member>((?:(?!<member>).)*?<OutputKey>.*?)<\/member>/gs) ?? [];
  const output = outputs.find((each) => each.includes('<OutputKey>BaseUrl</OutputKey>')) ?? '';
  return /<OutputValue>(https:\/\/[^<\s]+)<\/OutputValue>/.exec(output)?.[1];
}
