/** Reads the state and the outputs of a deployed stack. Never changes one. */
import { systemClock } from '../system/system-clock.ts';
import type { AwsAccess } from '../system/environment.ts';
import { endpointOf } from './aws-endpoint.ts';
import { requestSigner } from './request-signer.ts';
import { textOf } from './xml-text.ts';

const timeoutMs = 10_000;
const cloudFormation = { name: 'cloudformation', variable: 'AWS_ENDPOINT_URL_CLOUDFORMATION' };

export interface DeployedStack {
  /** As CloudFormation calls it: `CREATE_COMPLETE`. */
  status: string;
  outputs: ReadonlyMap<string, string>;
}

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
 * One request to CloudFormation's Query API. Written by hand to avoid a client package for a single request.
 * @returns undefined when there is no such stack. Throws a StackRefusal, or the error of the network.
 */
export async function describeStack(
  stack: string,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<DeployedStack | undefined> {
  const { region } = aws;
  const request = {
    url: endpointOf(cloudFormation, region, environment).href,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `Action=DescribeStacks&StackName=${stack}&Version=2010-05-15`,
  };
  const sign = requestSigner({ aws, clock: systemClock });
  const headers = await sign(request, { service: 'cloudformation', region });
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { method: 'POST', headers, body: request.body, signal, redirect: 'manual' } as const;
  const reply = await fetch(request.url, options);
  const xml = await reply.text();
  if (reply.status === 200) return { status: textOf(xml, 'StackStatus') ?? '', outputs: outputsIn(xml) };
  const code = textOf(xml, 'Code') ?? `status ${reply.status}`;
  const message = textOf(xml, 'Message') ?? '';
  if (code === 'ValidationError' && message.includes('does not exist')) return undefined;
  throw new StackRefusal(code, message);
}

/** The outputs of the one stack that was asked for. */
const outputsIn = (xml: string): Map<string, string> =>
  new Map(
    xml.split('<member>').flatMap((member) => {
      const name = textOf(member, 'OutputKey');
      const value = textOf(member, 'OutputValue');
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
