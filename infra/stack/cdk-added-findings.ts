/**
 * Accepted cdk-nag findings about what CDK itself adds to a stack. With a Web Function: a bucket for its code, and a function
 * that copies the code there while deploying. With a bucket that empties itself: the function that does.
 */
import { Stack, Token, Validations, type Acknowledgment } from 'aws-cdk-lib';
import { emptyingProvider } from './constructs/triggers.ts';

/** As findings show it: what is open has its name in angle brackets. */
export const shown = (value: string, name: string): string =>
  Token.isUnresolved(value) ? `<AWS::${name}>` : value;

const basicExecution = (stack: Stack): string =>
  `IAM4[Policy::arn:${shown(stack.partition, 'Partition')}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]`;

const reason = "CDK's own, while deploying: it copies the server's code from the assets of the account";

function copyFindings(stack: Stack, codeBucket: string): Acknowledgment[] {
  const { account, partition, region, synthesizer } = stack;
  const qualifier = synthesizer.bootstrapQualifier ?? 'hnb659fds';
  const arn = `arn:${shown(partition, 'Partition')}`;
  const assets = `cdk-${qualifier}-assets-${shown(account, 'AccountId')}-${shown(region, 'Region')}`;
  return [
    basicExecution(stack),
    `IAM5[Resource::${arn}:s3:::${assets}/*]`,
    'IAM5[Action::s3:Abort*]',
    'IAM5[Action::s3:DeleteObject*]',
    `IAM5[Resource::<${codeBucket}.Arn>/web-function/*]`,
  ].map((finding) => ({ id: `AwsSolutions::AwsSolutions-${finding}`, reason }));
}

/** Without effect on a stack that has none of it. */
export function acknowledgeCodeCopy(stack: Stack): void {
  const bucket = stack.node.children.find(({ node }) => node.id === 'AWSCDKWebFunctionAssetBucket');
  const resource = bucket?.node.defaultChild;
  if (!bucket || !resource) return;
  Validations.of(bucket).acknowledge({
    id: 'AwsSolutions::AwsSolutions-S1',
    reason: 'Holds the code of the server alone, which is public',
  });
  const codeBucket = stack.getLogicalId(resource as Parameters<Stack['getLogicalId']>[0]);
  for (const child of stack.node.children)
    if (child.node.id.startsWith('Custom::S3ObjectCopy'))
      Validations.of(child).acknowledge(...copyFindings(stack, codeBucket));
}

/** Without effect on a stack that has no such bucket. */
export function acknowledgeEmptying(stack: Stack): void {
  const provider = emptyingProvider(stack);
  if (!provider) return;
  Validations.of(provider).acknowledge({
    id: `AwsSolutions::AwsSolutions-${basicExecution(stack)}`,
    reason:
      "CDK's own, in a trial alone: it empties the bucket of stream failures before the stack is deleted",
  });
}
