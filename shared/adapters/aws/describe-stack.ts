/**
 * Asks CloudFormation about a deployed stack, by requests to its Query API that are written by hand: two of them need no client
 * package. Never repeats one, and never changes a stack by itself.
 */
import { systemClock } from '../system/system-clock.ts';
import type { AwsAccess } from '../system/environment.ts';
import { endpointOf } from './aws-endpoint.ts';
import { requestSigner } from '../transport/request-signer.ts';
import { textOf } from './xml-text.ts';

const timeoutMs = 10_000;
const cloudFormation = { name: 'cloudformation', variable: 'AWS_ENDPOINT_URL_CLOUDFORMATION' };

export interface DeployedStack {
  /** As CloudFormation calls it: `CREATE_COMPLETE`. */
  status: string;
  /** It cannot be deleted. */
  isProtected: boolean;
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

/** @returns undefined when there is no such stack. Throws a StackRefusal, or the error of the network. */
export async function describeStack(
  stack: string,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<DeployedStack | undefined> {
  const parameters = { Action: 'DescribeStacks', StackName: stack };
  const xml = await queryStacks(parameters, aws, environment).catch((error: unknown) => {
    if (!(error instanceof StackRefusal)) throw error;
    if (error.code === 'ValidationError' && error.message.includes('does not exist')) return undefined;
    throw error;
  });
  if (xml === undefined) return undefined;
  return {
    status: textOf(xml, 'StackStatus') ?? '',
    isProtected: textOf(xml, 'EnableTerminationProtection') === 'true',
    outputs: outputsIn(xml),
  };
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
  const request = {
    url: endpointOf(cloudFormation, region, environment).href,
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

/** The outputs of the one stack that was asked for. */
const outputsIn = (xml: string): Map<string, string> =>
  new Map(
    xml.split('<member>').flatMap((member) => {
      const name = textOf(member, 'OutputKey');
      const value = textOf(member, 'OutputValue');
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
