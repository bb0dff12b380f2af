/** Lets the functions that answer call the Bedrock models that the deployment names; without names, none. */
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { functionDescriptions } from './function-descriptions.ts';
import type { RelayFunctions } from './relay-functions.ts';

export function allowBedrockModels(functions: RelayFunctions, modelArns: string[]): void {
  if (modelArns.length === 0) return;
  for (const [name, { lambda }] of functions.byName) {
    if (functionDescriptions[name].url !== 'RESPONSE_STREAM') continue;
    lambda.addToRolePolicy(
      new PolicyStatement({
        // What Chat Completions on Bedrock needs, whole and streamed.
        actions: ['bedrock:InvokeModel', 'bedrock:InvokeModelWithResponseStream'],
        resources: modelArns,
      }),
    );
  }
}
