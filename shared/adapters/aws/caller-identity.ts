/**
 * Finds the ARN of an operator's credentials, which needs no permission. If that fails, the access key identifies the operator:
 * a failure must never stop the caller.
 */
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { composeClientSettings, type AwsCaller } from './client-settings.ts';

const identityMsMax = 3000;

/** @param readAccessKey throws when there are no credentials */
export async function identifyCaller(
  caller: AwsCaller,
  readAccessKey: () => Promise<string>,
): Promise<string> {
  const client = new STSClient(composeClientSettings(caller, 'STS', identityMsMax));
  const { Arn } = await client.send(new GetCallerIdentityCommand()).catch(() => ({ Arn: undefined }));
  return Arn || readAccessKey();
}
