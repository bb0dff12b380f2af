/** Lets the answering functions call the Bedrock models that the deployment lists; by default none. */
import { allow } from './allow.ts';
import { functionDescriptions } from './function-descriptions.ts';
import type { RelayFunctions } from './relay-functions.ts';

export function allowBedrockModels(functions: RelayFunctions, modelArns: readonly string[]): void {
  if (modelArns.length === 0) return;
  for (const [name, { lambda }] of functions.byName) {
    if (functionDescriptions[name].url !== 'RESPONSE_STREAM') continue;
    // Every dialect of Bedrock's runtime needs these two, for whole and for streamed answers.
    const actions = ['InvokeModel', 'InvokeModelWithResponseStream'];
    lambda.addToRolePolicy(allow('bedrock', actions, ...modelArns));
  }
}
