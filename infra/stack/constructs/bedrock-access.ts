/** Lets the answering functions call the Bedrock models that the deployment lists; by default none. */
import type { Role } from 'aws-cdk-lib/aws-iam';
import { allow } from './allow.ts';
import { functionDescriptions } from './function-descriptions.ts';
import type { RelayFunctions } from './relay-functions.ts';

/** @param server what answers in the place of the functions, if anything does */
export function allowBedrockModels(
  functions: RelayFunctions,
  modelArns: readonly string[],
  server?: { role: Role },
): void {
  if (modelArns.length === 0) return;
  // Every dialect of Bedrock's runtime needs these two, for whole and for streamed answers.
  const actions = ['InvokeModel', 'InvokeModelWithResponseStream'];
  for (const [name, { lambda }] of functions.byName) {
    if (functionDescriptions[name].sealsState !== true) continue;
    lambda.addToRolePolicy(allow('bedrock', actions, ...modelArns));
  }
  server?.role.addToPolicy(allow('bedrock', actions, ...modelArns));
}
