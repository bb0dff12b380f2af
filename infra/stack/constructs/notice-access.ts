/** Lets the function `notify` publish to the stack's topic and send mail, each only where the deployment has it. */
import { Stack, Token } from 'aws-cdk-lib';
import { Topic, type ITopic } from 'aws-cdk-lib/aws-sns';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { allow } from './allow.ts';
import type { RelayFunctions } from './relay-functions.ts';

export interface NoticeAccess {
  topic?: ITopic | undefined;
  /** The verified address of mail to customers. */
  sender?: string | undefined;
}

/** A topic that is not made here and whose key nobody said may have one. */
export const hasUnknownKey = (topic: ITopic): boolean =>
  !(topic instanceof Topic) && topic.masterKey === undefined;

/** SNS asks with the rights of whoever publishes. The key of a topic that is only known by its ARN is not known. */
function keyAccess(topic: ITopic): PolicyStatement | undefined {
  const { masterKey } = topic;
  const actions = ['Decrypt', 'GenerateDataKey*'];
  if (masterKey !== undefined) return allow('kms', actions, masterKey.keyArn);
  if (!hasUnknownKey(topic)) return undefined;
  const { partition, region, urlSuffix } = Stack.of(topic);
  const statement = allow('kms', actions, `arn:${partition}:kms:${region}:${accountOf(topic)}:key/*`);
  statement.addCondition('StringEquals', { 'kms:ViaService': `sns.${region}.${urlSuffix}` });
  return statement;
}

/** Of whoever has the topic. A key of another account needs a policy of its own that lets this one use it. */
export const accountOf = ({ env }: ITopic): string => (Token.isUnresolved(env.account) ? '*' : env.account);

export function allowNotices(functions: RelayFunctions, { topic, sender }: NoticeAccess): void {
  const { lambda } = functions.get('notify');
  if (topic) {
    lambda.addEnvironment('ALERT_TOPIC', topic.topicArn);
    lambda.addToRolePolicy(allow('sns', ['Publish'], topic.topicArn));
    const ofKey = keyAccess(topic);
    if (ofKey) lambda.addToRolePolicy(ofKey);
  }
  if (sender !== undefined) {
    lambda.addEnvironment('ALERT_SENDER', sender);
    lambda.addToRolePolicy(
      new PolicyStatement({
        actions: ['ses:SendEmail'],
        // SES checks the identity that it finds verified: the address, or its domain.
        resources: [sender, sender.slice(sender.indexOf('@') + 1)].map((identity) =>
          Stack.of(lambda).formatArn({ service: 'ses', resource: 'identity', resourceName: identity }),
        ),
        conditions: { StringEquals: { 'ses:FromAddress': sender } },
      }),
    );
  }
}
