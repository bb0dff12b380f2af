/** Servers instead of functions: the task's permissions, configuration, shutdown and alarms. */
import { describe, expect, test } from 'vitest';
import { servedFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { optionSets } from './option-sets.ts';
import { readable, resourcesOf, synthesize, type Template } from './synthesize.ts';

const options = optionSets['servers in a VPC that exists'] ?? {};
const { template } = synthesize(options);
const { compute: _compute, service: _service, ...sameOptions } = options;
const { template: ofFunctions } = synthesize(sameOptions);

/** `dynamodb:GetItem on <Tableskeys...>`, of the inline policies of the roles with such names, except for logs, which differ by role. */
function rightsOf(of: Template, roles: RegExp): string[] {
  const rights = resourcesOf(of, 'AWS::IAM::Policy')
    .filter(([, { Properties }]) => roles.test(JSON.stringify(Properties.Roles)))
    .flatMap(
      ([, { Properties }]) =>
        (Properties.PolicyDocument as { Statement: Record<string, unknown>[] }).Statement,
    )
    .flatMap(({ Action, Resource }) =>
      [Action]
        .flat()
        .flatMap((action) => [Resource].flat().map((on) => `${String(action)} on ${readable(on)}`)),
    );
  return [...new Set(rights)].filter((right) => !right.startsWith('logs:')).toSorted();
}

const only = (type: string): Record<string, unknown> => {
  const [[, { Properties }] = ['', { Properties: {} }], ...others] = resourcesOf(template, type);
  expect(others).toEqual([]);
  return Properties;
};
const container = (): Record<string, unknown> =>
  (only('AWS::ECS::TaskDefinition')['ContainerDefinitions'] as Record<string, unknown>[])[0] ?? {};
const valuesOf = (pairs: unknown): Record<string, string> =>
  Object.fromEntries((pairs as { Name: string; Value: string }[]).map(({ Name, Value }) => [Name, Value]));

describe('a server instead of functions', () => {
  test('has exactly the combined permissions of these functions; payments and keys keep their own functions', () => {
    const functions = new RegExp(`Functions(${servedFunctions.join('|')})Role`);
    const rights = rightsOf(ofFunctions, functions);
    expect(rights.length).toBeGreaterThan(25);
    expect(rights.join()).not.toMatch(/Tables(payments|grants)/);
    expect(rights.filter((right) => /Put|Update/.test(right)).join()).not.toMatch(/Tableskeys/);
    expect(rightsOf(template, /ServerTaskTaskRole/)).toEqual(rights);
    const made = resourcesOf(template, 'AWS::Lambda::Function').map(([id]) => id);
    expect(made.filter((id) => servedFunctions.some((name) => id.includes(`Functions${name}`)))).toEqual([]);
    expect(made).toHaveLength(9);
    expect(resourcesOf(template, 'AWS::Lambda::Url').map(([id]) => id)).toEqual([
      expect.stringMatching(/^Functionspayments/),
      expect.stringMatching(/^Functionsselfservice/),
    ]);
  });

  test('gets no secret in its task definition, and reads each number of both kinds', () => {
    const { Environment, Secrets } = container();
    expect(JSON.stringify(Environment)).not.toContain('resolve:');
    expect((Secrets as { Name: string }[]).map(({ Name }) => Name)).toEqual([
      'ORIGIN_SECRET_1',
      'ORIGIN_SECRET_2',
      'SEAL_KEY_1',
      'SEAL_KEY_2',
      'OTEL_EXPORTER_OTLP_HEADERS',
    ]);
  });

  test('has 15 minutes at the balancer to finish its calls, and is killed only after its own time limit for them', () => {
    const { Environment, StopTimeout, ReadonlyRootFilesystem } = container();
    const drain = Number(valuesOf(Environment)['RELAY_DRAIN_SECONDS']);
    // Six seconds for the last bytes and bills: docs/server.md.
    expect(Number(StopTimeout)).toBeGreaterThanOrEqual(drain + 6);
    expect(StopTimeout).toBe(120);
    expect(ReadonlyRootFilesystem).toBe(true);
    expect(only('AWS::ElasticLoadBalancingV2::TargetGroup')).toMatchObject({
      HealthCheckPath: '/server/health',
      TargetGroupAttributes: expect.arrayContaining([
        { Key: 'deregistration_delay.timeout_seconds', Value: '900' },
      ]) as unknown,
    });
    expect(only('AWS::ECS::Service')).toMatchObject({
      DeploymentConfiguration: { DeploymentCircuitBreaker: { Enable: true, Rollback: true } },
    });
    expect(only('AWS::ECS::Service')).not.toHaveProperty('DesiredCount');
  });

  test('can be reached only by the distribution, through a balancer without a public address; payments and keys go to their functions', () => {
    expect(only('AWS::ElasticLoadBalancingV2::LoadBalancer')).toMatchObject({ Scheme: 'internal' });
    const config = only('AWS::CloudFront::Distribution')['DistributionConfig'] as {
      Origins: { Id: string }[];
      CacheBehaviors: { PathPattern: string; TargetOriginId: string }[];
    };
    expect(config.Origins).toMatchObject([
      {
        VpcOriginConfig: { OriginReadTimeout: 120 },
        OriginCustomHeaders: [{ HeaderName: 'x-relay-origin' }],
      },
      { CustomOriginConfig: {}, OriginCustomHeaders: [{ HeaderName: 'x-relay-origin' }] },
      { CustomOriginConfig: {}, OriginCustomHeaders: [{ HeaderName: 'x-relay-origin' }] },
    ]);
    const alone = config.CacheBehaviors.filter(
      ({ TargetOriginId }) => TargetOriginId !== config.Origins[0]?.Id,
    );
    expect(alone.map(({ PathPattern }) => PathPattern)).toEqual([
      '/v1/account/keys*',
      '/v1/account/top-ups',
      '/v1/account/codes',
      '/hooks/payments/stripe',
    ]);
  });

  test('is monitored: requests without an answer count as failures, and call searches read its log', () => {
    const alarms = new Map(resourcesOf(template, 'AWS::CloudWatch::Alarm'));
    const named = (name: string) => [...alarms].find(([id]) => id.startsWith(`Alarms${name}`))?.[1];
    expect(named('FunctionThrottles')).toBeUndefined();
    for (const name of ['AvailabilityPage', 'ServerErrors'])
      expect(JSON.stringify(named(name)?.Properties)).toContain('HTTPCode_ELB_5XX_Count');
    const groups = resourcesOf(template, 'AWS::Logs::LogGroup').map(([id]) => id);
    const log = groups.find((id) => id.startsWith('ServerLogs')) ?? 'none';
    expect(readable(template.Outputs['CallLogGroups']?.Value)).toContain(log);
    const queries = resourcesOf(template, 'AWS::Logs::QueryDefinition').map(
      ([, { Properties }]) => Properties,
    );
    for (const { LogGroupNames } of queries) expect(JSON.stringify(LogGroupNames)).toContain(log);
  });

  test('scales with its requests in flight', () => {
    const policies = resourcesOf(template, 'AWS::ApplicationAutoScaling::ScalingPolicy').map(
      ([, { Properties }]) => Properties,
    );
    expect(policies).toContainEqual(
      expect.objectContaining({
        TargetTrackingScalingPolicyConfiguration: expect.objectContaining({
          TargetValue: 100,
          CustomizedMetricSpecification: {
            Namespace: 'relay',
            MetricName: 'RequestsInFlight',
            Dimensions: [{ Name: 'stack', Value: 'relay-company' }],
            Statistic: 'Average',
          },
        }) as unknown,
      }),
    );
    expect(valuesOf(container()['Environment'])['RELAY_COUNT_SECONDS']).toBe('15');
    expect(only('AWS::ApplicationAutoScaling::ScalableTarget')).toMatchObject({
      MinCapacity: 3,
      MaxCapacity: 40,
    });
  });
});
