import { expect, test } from 'vitest';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

const model = 'arn:aws:bedrock:us-west-2::foundation-model/openai.gpt-oss-120b-1:0';
const profile = 'arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.openai.gpt-oss-120b-1:0';

interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: unknown;
}

/** Which role may do what of Bedrock's, with which models. */
function bedrockGrants(context: Record<string, unknown>): string[] {
  const { template } = synthesize(context);
  return resourcesOf(template, 'AWS::IAM::Policy').flatMap(([, { Properties: policy }]) => {
    const role = /Functions(\w+?)Role/.exec(JSON.stringify(policy.Roles))?.[1];
    return (policy.PolicyDocument as { Statement: Statement[] }).Statement.flatMap((statement) =>
      [statement.Action]
        .flat()
        .filter((action) => action.startsWith('bedrock'))
        .flatMap((action) =>
          [statement.Resource].flat().map((resource) => `${role} ${action} ${readable(resource)}`),
        ),
    );
  });
}

test('without models in the context, no function may call Bedrock', () => {
  expect(bedrockGrants({})).toEqual([]);
  expect(bedrockGrants({ bedrockModels: '' })).toEqual([]);
});

test.each([
  ['as the CLI passes them', `${model}, ${profile}`],
  ['as a list', [model, profile]],
])('the two functions that answer may call the named models alone, %s', (_how, bedrockModels) => {
  const grants = ['chat', 'responses'].flatMap((name) =>
    ['bedrock:InvokeModel', 'bedrock:InvokeModelWithResponseStream'].flatMap((action) =>
      [profile, model].map((arn) => `${name} ${action} ${arn}`),
    ),
  );
  expect(bedrockGrants({ bedrockModels })).toEqual(grants);
});

test.each(['*', 'arn:aws:bedrock:*::foundation-model/x', `${model}*`, 'openai.gpt-oss-120b-1:0', { model }])(
  '%j is refused',
  (bedrockModels) => {
    expect(() => synthesize({ bedrockModels })).toThrow(
      /context bedrockModels: found .*wanted ARNs of Bedrock/,
    );
  },
);
