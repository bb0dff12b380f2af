/** Where clients reach a relay. */
import { text } from 'node:stream/consumers';
import { signedTransport } from './signed-transport.ts';
import { systemClock } from '../system/system-clock.ts';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import type { Store } from '../dynamodb/operator-client.ts';

const timeoutMs = 10_000;
const defaultPort = '8787';

/** Of a local stack its front door, else an output of the deployed stack; undefined when that cannot be read. */
export async function findBaseUrl(store: Store, environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (store.target.local) return `http://127.0.0.1:${environment['PORT'] ?? defaultPort}/v1`;
  try {
    return baseUrlIn(await describeStack(store, environment));
  } catch {
    // It is read for convenience alone: who may not describe stacks knows the address otherwise.
    return undefined;
  }
}

/** One request of CloudFormation's Query interface: a whole client of it would be a package for this alone. */
async function describeStack({ client, target }: Store, environment: NodeJS.ProcessEnv): Promise<string> {
  const region = await client.config.region();
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const endpoint =
    environment['AWS_ENDPOINT_URL_CLOUDFORMATION'] ?? `https://cloudformation.${region}.${domain}`;
  const aws = { region, credentials: await client.config.credentials() };
  const transport = signedTransport({ transport: fetchTransport, aws, clock: systemClock });
  const request = {
    url: `${endpoint}/`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `Action=DescribeStacks&StackName=${target.stack}&Version=2010-05-15`,
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
  const outputs = xml.matchAll(/<member>((?:(?!<member>).)*?<OutputKey>.*?)<\/member>/gs);
  for (const [, output = ''] of outputs)
    if (output.includes('<OutputKey>BaseUrl</OutputKey>'))
      return /<OutputValue>(https:\/\/[^<\s]+)<\/OutputValue>/.exec(output)?.[1];
  return undefined;
}
