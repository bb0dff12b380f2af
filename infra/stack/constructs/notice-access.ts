/** Lets the function `notify` publish to the stack's topic and send mail, each only where the deployment has it. */
import { Stack } from 'aws-cdk-lib';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { allow } from './allow.ts';
import type { RelayFunctions } from './relay-functions.ts';

export interface NoticeAccess {
  topic?: ITopic | undefined;
  /** The verified address of mail to customers. */
  sender?: string | undefined;
}

export function allowNotices(functions: RelayFunctions, { topic, sender }: NoticeAccess): void {
  const { lambda } = functions.get('notify');
  if (topic) {
    lambda.addEnvironment('ALERT_TOPIC', topic.topicArn);
    lambda.addToRolePolicy(allow('sns', ['Publish'], topic.topicArn));
    const key = topic.masterKey?.keyArn;
    if (key !== undefined) lambda.addToRolePolicy(allow('kms', ['Decrypt', 'GenerateDataKey'], key));
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
