import { expect, test } from 'vitest';
import { callingFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

const model = 'arn:aws:bedrock:us-west-2::foundation-model/openai.gpt-oss-120b-1:0';

interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: unknown;
}

/** The Bedrock actions and models that each role is allowed. */
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

test('without models in the options, no function may call Bedrock', () => {
  expect(bedrockGrants({})).toEqual([]);
  expect(bedrockGrants({ bedrockModels: [] })).toEqual([]);
});

const claude = 'anthropic.claude-opus-5-5-v1:0';
const profileOf = (geography: string) =>
  `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${geography}.${claude}`;
const modelIn = (region: string) => `arn:aws:bedrock:${region}::foundation-model/${claude}`;

test('a profile with its regions allows the profile, and its model in the regions that it routes to', () => {
  const bedrockModels = [{ profile: profileOf('us'), regions: ['us-east-2', 'us-west-2'] }];
  const arns = [profileOf('us'), ...['us-east-1', 'us-east-2', 'us-west-2'].map(modelIn)];
  const grants = bedrockGrants({ bedrockModels });
  expect(new Set(grants)).toEqual(
    new Set(
      callingFunctions.flatMap((name) =>
        ['bedrock:InvokeModel', 'bedrock:InvokeModelWithResponseStream'].flatMap((action) =>
          arns.map((arn) => `${name} ${action} ${arn}`),
        ),
      ),
    ),
  );
});

test('a global profile allows its model in the region of the call, and without a region', () => {
  const grants = bedrockGrants({ bedrockModels: [{ profile: profileOf('global') }] });
  expect(grants.filter((grant) => grant.startsWith('chat bedrock:InvokeModel '))).toEqual(
    expect.arrayContaining(
      [profileOf('global'), modelIn('us-east-1'), modelIn('')].map(
        (arn) => `chat bedrock:InvokeModel ${arn}`,
      ),
    ),
  );
  expect(grants).toHaveLength(3 * 2 * callingFunctions.length);
});

test.each([
  [[profileOf('us')], /expected also the ARNs of anthropic\.claude-opus-5-5-v1:0 in every region/],
  [[{ profile: profileOf('us') }], /expected the regions that the profile routes to/],
  [[{ profile: profileOf('us'), regions: ['everywhere'] }], /expected the regions/],
  [[{ profile: profileOf('us'), regions: 'us-east-1' }], /expected the regions/],
  [[{ profile: modelIn('us-east-1'), regions: ['us-east-1'] }], /ARN of an inference profile/],
  [[{ profile: profileOf('us'), region: ['us-east-1'] }], /bedrockModels\[0\]\.region: not /],
])('%j is rejected: %s', (bedrockModels, message) => {
  expect(() => synthesize({ bedrockModels })).toThrow(message);
});

test.each(['*', 'arn:aws:bedrock:*::foundation-model/x', `${model}*`, 'openai.gpt-oss-120b-1:0', { model }])(
  '%j is rejected',
  (bedrockModels) => {
    expect(() => synthesize({ bedrockModels: [bedrockModels] })).toThrow(
      /bedrockModels\[0\]: found .*expected (ARNs of Bedrock|the ARN of an inference profile)/,
    );
    expect(() => synthesize({ bedrockModels })).toThrow(/bedrockModels: found .*expected ARNs of Bedrock/);
  },
);
