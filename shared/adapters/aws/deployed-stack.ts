/**
 * Asks CloudFormation about a deployed stack, by requests to its Query API that are written by hand: two of them need no client
 * package. Never repeats one, and never changes a stack by itself.
 */
import { systemClock } from '../system/node-ports.ts';
import type { AwsAccess } from '../system/environment.ts';
import { endpointOf } from './aws-calls.ts';
import { requestSigner } from '../transport/request-signer.ts';

/** Reads the text of elements in answers of AWS's query APIs. Never for documents of others: it knows no attributes. */

/** The text of the first element of this name that holds nothing but text. */
export function textOf(xml: string, element: string): string | undefined {
  const [, content] = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml) ?? [];
  return content?.replaceAll(
    /&(#x?[0-9a-f]+|[a-z]+);/gi,
    (whole, name: string) => characterOf(name) ?? whole,
  );
}

const named: Readonly<Record<string, string>> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' };

function characterOf(name: string): string | undefined {
  if (!name.startsWith('#')) return named[name];
  const code = Number(name.startsWith('#x') ? `0${name.slice(1)}` : name.slice(1));
  return code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}

const timeoutMs = 10_000;
const cloudFormation = { name: 'cloudformation', variable: 'AWS_ENDPOINT_URL_CLOUDFORMATION' };

interface DeployedStack {
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

// Finds the base URL of a relay and the log groups of its calls: outputs of the deployed stack.

interface StackAddress {
  stack: string;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<AwsAccess>;
}

/** @returns undefined when it cannot be read, e.g. without permission to describe stacks */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  return baseUrlOf(address).catch(() => undefined);
}

async function baseUrlOf({ stack, environment, ...address }: StackAddress): Promise<string | undefined> {
  const deployed = await describeStack(stack, await address.aws(), environment);
  const url = deployed?.outputs.get('BaseUrl');
  return url?.startsWith('https://') ? url : undefined;
}

/** Undefined: there is no such stack, or it is of a version that does not say. */
export async function findLogGroups({
  stack,
  environment,
  aws,
}: StackAddress): Promise<{ groups: string[] } | undefined> {
  const deployed = await describeStack(stack, await aws(), environment);
  const groups = deployed?.outputs.get('CallLogGroups')?.split(',');
  return groups && { groups };
}
