/** Reads a stack of CloudFormation: state, outputs. https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html */
import type { DeployedStack } from '../../operate/aws-account.ts';
import { callAws, type AwsCaller } from './aws-call.ts';

/** Undefined: there is none. */
export async function describeStack(caller: AwsCaller, name: string): Promise<DeployedStack | undefined> {
  const body = new URLSearchParams({
    Action: 'DescribeStacks',
    StackName: name,
    Version: '2010-05-15',
  }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  try {
    return stackIn(await callAws(caller, { service: 'cloudformation', headers, body }));
  } catch (error) {
    // CloudFormation answers so for a name that it does not know.
    if (error instanceof Error && error.name === 'ValidationError') return undefined;
    throw error;
  }
}

function stackIn(xml: string): DeployedStack {
  const outputs = [...xml.matchAll(/<member>((?:(?!<member>).)*?<OutputKey>.*?)<\/member>/gs)].map(
    ([, output = '']) => [textIn(output, 'OutputKey'), textIn(output, 'OutputValue')],
  );
  return {
    account: textIn(xml, 'StackId').split(':')[4] ?? '',
    status: textIn(xml, 'StackStatus'),
    outputs: new Map(outputs as [string, string][]),
  };
}

const textIn = (xml: string, element: string): string =>
  plainText(new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1] ?? '');

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

const plainText = (text: string): string =>
  text.replaceAll(
    /&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return entities[name] ?? whole;
      return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal));
    },
  );
