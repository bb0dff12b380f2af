import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { Relay, type RelayProps } from '../../infra/stack/relay.ts';
import { readable, type Resource } from '../infra/synthesize.ts';

type Resources = Record<string, Resource>;

function resourcesWith(props: RelayProps): Resources {
  const folder = mkdtempSync(join(tmpdir(), 'relay-web-'));
  try {
    const bundlesFolder = join(folder, 'dist');
    for (const name of [...functionNames, 'server']) {
      mkdirSync(join(bundlesFolder, name), { recursive: true });
      writeFileSync(join(bundlesFolder, name, 'index.mjs'), `export const handler = '${name}';\n`);
    }
    const app = new App({ outdir: join(folder, 'out') });
    const stack = new Stack(app, 'relay');
    const relay = new Relay(stack, 'Default', { ...props, bundlesFolder });
    return Template.fromStack(Stack.of(relay)).toJSON()['Resources'] as Resources;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const unshifted = resourcesWith({ shifting: false });
const web = resourcesWith({ compute: 'web' });
const only = (type: string): Resource => {
  const found = Object.values(web).filter((resource) => resource.Type === type);
  expect(found).toHaveLength(1);
  return found[0] as Resource;
};

describe('compute: web', () => {
  test('leaves every resource of a stack without it and without shifting in place, under its name', () => {
    const changed = Object.entries(unshifted).filter(
      ([id, resource]) => JSON.stringify(web[id]) !== JSON.stringify(resource),
    );
    // Two policies of operators name the log groups of what answers calls.
    expect(changed.map(([, { Type }]) => Type)).toEqual([
      'AWS::CloudFront::Distribution',
      'AWS::IAM::ManagedPolicy',
      'AWS::IAM::ManagedPolicy',
    ]);
  });

  test('shifts no calls between versions of functions that get none, and counts none, and has no alarms on them', () => {
    const types = new Set(Object.values(web).map(({ Type }) => Type));
    expect([...types].filter((type) => /CodeDeploy|MetricFilter/.test(type))).toEqual([]);
    expect(Object.keys(web).filter((id) => id.includes('NewVersion'))).toEqual([]);
  });

  test('sends every path of the distribution to one endpoint, over TLS, with the origin secret', () => {
    const config = only('AWS::CloudFront::Distribution').Properties['DistributionConfig'] as {
      Origins: {
        Id: string;
        DomainName: unknown;
        CustomOriginConfig: object;
        OriginCustomHeaders: object[];
      }[];
      DefaultCacheBehavior: { TargetOriginId: string };
      CacheBehaviors: { TargetOriginId: string }[];
    };
    const [origin, ...others] = config.Origins;
    expect(others).toEqual([]);
    const targets = [config.DefaultCacheBehavior, ...config.CacheBehaviors].map(
      (each) => each.TargetOriginId,
    );
    expect(new Set(targets)).toEqual(new Set([origin?.Id]));
    expect(readable(origin?.DomainName)).toMatch(/^<ServerWebFunctionEndpoint\w+\.DomainName>$/);
    expect(origin).toMatchObject({
      CustomOriginConfig: { OriginProtocolPolicy: 'https-only', OriginReadTimeout: 120 },
      OriginCustomHeaders: [{ HeaderName: 'x-relay-origin' }],
    });
  });

  test('runs the server with what the functions have, and no time to drain', () => {
    const { ServiceConfig: service } = only('AWS::Lambda::WebFunctionRevision').Properties as {
      ServiceConfig: { EnvironmentVariables: Record<string, unknown> };
    };
    expect(service).toMatchObject({ TimeoutSeconds: 900, MaxConcurrencyPerEnvironment: 128 });
    const chat = Object.entries(web).find(([id]) => /^FunctionschatFunction\w+$/.test(id))?.[1];
    const { Variables = {} } = (chat?.Properties['Environment'] ?? {}) as {
      Variables?: Record<string, unknown>;
    };
    const shared = ['RELAY_STACK', 'RELAY_VERSION', 'ORIGIN_SECRETS', 'SEAL_KEYS', 'PSEUDONYM_KEY'];
    expect(service.EnvironmentVariables).toEqual({
      ...Object.fromEntries(shared.map((name) => [name, Variables[name]])),
      BACKGROUND_FUNCTION: { Ref: expect.stringMatching(/^FunctionsbackgroundFunction\w+$/) },
      RELAY_REQUESTS_MAX: '128',
      RELAY_DRAIN_SECONDS: '0',
      AWS_LAMBDA_NODEJS_ENTRYPOINT: 'index.mjs',
    });
  });

  test('splits no account where the functions do not', () => {
    const whole = resourcesWith({ compute: 'web', oneItemPerAccount: true });
    const revision = Object.values(whole).find(({ Type }) => Type === 'AWS::Lambda::WebFunctionRevision');
    expect(revision?.Properties['ServiceConfig']).toMatchObject({
      EnvironmentVariables: { ONE_ITEM_PER_ACCOUNT: '1' },
    });
  });

  test('is public by its endpoint alone, so it refuses without the secret, as Function URLs do', () => {
    expect(only('AWS::Lambda::WebFunctionEndpoint').Properties).toMatchObject({
      AuthType: 'ApplicationManaged',
    });
  });

  test('may do what the functions that answer requests may, and no more', () => {
    const policyOf = (pattern: RegExp): { Action: string | string[]; Resource: unknown }[] => {
      const found = Object.entries(web).find(([id]) => pattern.test(id))?.[1];
      const { Statement = [] } = (found?.Properties['PolicyDocument'] ?? {}) as { Statement?: [] };
      return Statement;
    };
    const permissions = (pattern: RegExp): string[] =>
      policyOf(pattern).flatMap(({ Action, Resource }) =>
        [Action].flat().flatMap((action) => [Resource].flat().map((one) => `${action} ${readable(one)}`)),
      );
    const own = permissions(/^ServerRoleDefaultPolicy/).filter((each) => !each.startsWith('logs:'));
    const theirs = ['chat', 'responses', 'catalog', 'payments']
      .flatMap((name) => permissions(new RegExp(`^Functions${name}RoleDefaultPolicy`)))
      .filter((each) => !each.startsWith('logs:'));
    expect([...new Set(own)].toSorted()).toEqual([...new Set(theirs)].toSorted());
  });
});
