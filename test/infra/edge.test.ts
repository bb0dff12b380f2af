/** The web ACL and the other resources that CloudFront requires in us-east-1. */
import { describe, expect, test } from 'vitest';
import { resourcesOf, synthesize, type Template } from './synthesize.ts';

function only(template: Template | undefined, type: string): Record<string, unknown> {
  const found = template === undefined ? [] : resourcesOf(template, type);
  expect(found).toHaveLength(1);
  return found[0]?.[1].Properties ?? {};
}

const aclOf = (template: Template): unknown =>
  (only(template, 'AWS::CloudFront::Distribution').DistributionConfig as Record<string, unknown>).WebACLId;

describe('the web ACL', () => {
  test('rejects an address with too many requests with a 429 in the API’s form, before any function runs', () => {
    const { template } = synthesize({ region: 'us-east-1', webAcl: true });
    const Properties = only(template, 'AWS::WAFv2::WebACL');
    const [[id] = []] = resourcesOf(template, 'AWS::WAFv2::WebACL');
    expect(aclOf(template)).toEqual({ 'Fn::GetAtt': [id, 'Arn'] });
    expect(Properties).toMatchObject({ Scope: 'CLOUDFRONT', DefaultAction: { Allow: {} } });
    const rules = Properties['Rules'] as Record<string, unknown>[];
    expect(rules).toHaveLength(1);
    expect(rules[0]).toMatchObject({
      Statement: { RateBasedStatement: { AggregateKeyType: 'IP', Limit: 600, EvaluationWindowSec: 60 } },
      Action: {
        Block: {
          CustomResponse: {
            ResponseCode: 429,
            ResponseHeaders: [
              { Name: 'retry-after', Value: '60' },
              { Name: 'access-control-allow-origin', Value: '*' },
              { Name: 'access-control-expose-headers', Value: 'retry-after' },
            ],
          },
        },
      },
    });
    const { tooMany } = Properties['CustomResponseBodies'] as Record<string, Record<string, string>>;
    expect(tooMany?.['ContentType']).toBe('APPLICATION_JSON');
    expect(JSON.parse(String(tooMany?.['Content']))).toEqual({
      error: {
        message: expect.stringContaining('60 seconds') as string,
        type: 'rate_limit_error',
        param: null,
        code: 'rate_limit_exceeded',
      },
    });
  });

  test('has its own stack if the relay is in another region, which reads its ARN without a custom resource', () => {
    const { template, edge } = synthesize({ stage: 'prod', region: 'eu-central-1', webAcl: true });
    const name = 'relay-prod-edge-eu-central-1';
    expect(Object.keys(edge)).toEqual([name]);
    expect(only(edge[name], 'AWS::WAFv2::WebACL')).toMatchObject({ Name: 'relay-prod-eu-central-1' });
    expect(aclOf(template)).toEqual({
      'Fn::GetStackOutput': { StackName: name, OutputName: 'WebAclArn', Region: 'us-east-1' },
    });
    expect(edge[name]?.Outputs).toHaveProperty('WebAclArn');
    const types = [template, edge[name]].flatMap((each) => Object.values(each?.Resources ?? {}));
    expect(types.filter(({ Type }) => /^(Custom::|AWS::CloudFormation::)/.test(Type))).toEqual([]);
    expect(resourcesOf(template, 'AWS::WAFv2::WebACL')).toEqual([]);
  });
});

test('the alarm on the edge notifies the given topic in us-east-1', () => {
  const edgeAlarms = 'arn:aws:sns:us-east-1:123456789012:ops';
  const { edge } = synthesize({ region: 'eu-central-1', edgeAlarms });
  expect(only(edge['relay-edge-alarms-eu-central-1'], 'AWS::CloudWatch::Alarm')).toMatchObject({
    AlarmActions: [edgeAlarms],
  });
});

test('the topic of an alarm on the edge carries its suppression for scanners', () => {
  const { edge } = synthesize({ region: 'eu-central-1', edgeAlarms: true, alarmEmail: 'ops@example.com' });
  const [[, topic] = []] = resourcesOf(edge['relay-edge-alarms-eu-central-1'] as Template, 'AWS::SNS::Topic');
  expect(topic?.Metadata?.checkov?.skip.map(({ id }) => id)).toEqual(['CKV_AWS_26']);
});
