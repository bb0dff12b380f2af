import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { readable, resourcesOf, synthesize, type Resource, type Template } from './synthesize.ts';

let template: Template;

beforeAll(() => {
  ({ template } = synthesize({ stage: 'test', originSecrets: [1, 2], sealKeys: [1, 2] }));
});

function only(type: string, logicalIdStart: string): Resource['Properties'] {
  const found = resourcesOf(template, type).filter(([logicalId]) => logicalId.startsWith(logicalIdStart));
  expect(found).toHaveLength(1);
  return found[0]?.[1].Properties ?? {};
}

describe('functions', () => {
  test.each([
    ['chat', 900, 'RESPONSE_STREAM'],
    ['responses', 900, 'RESPONSE_STREAM'],
    ['catalog', 30, 'BUFFERED'],
    ['payments', 30, 'BUFFERED'],
  ])('%s runs on arm64 with Node 24 for at most %i s and answers %s', (name, seconds, invokeMode) => {
    expect(only('AWS::Lambda::Function', `Functions${name}Function`)).toMatchObject({
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Handler: 'index.handler',
      MemorySize: 256,
      Timeout: seconds,
      // Lambda's own lines about calls that end well cost more than ours.
      LoggingConfig: { LogFormat: 'JSON', SystemLogLevel: 'WARN' },
    });
    expect(only('AWS::Lambda::Url', `Functions${name}Function`)).toMatchObject({
      AuthType: 'NONE',
      InvokeMode: invokeMode,
    });
    expect(only('AWS::Logs::LogGroup', `Functions${name}Logs`)).toMatchObject({ RetentionInDays: 30 });
  });

  test('that answer calls are updated after those that read what they write', () => {
    const functions = resourcesOf(template, 'AWS::Lambda::Function');
    const idOf = (name: string): string | undefined =>
      functions.find(([id]) => id.startsWith(`Functions${name}Function`))?.[0];
    const readers = ['ledger', 'sweeper', 'grants', 'catalog'].map(idOf);
    for (const name of ['chat', 'responses']) {
      const [, resource] = functions.find(([id]) => id === idOf(name)) ?? [];
      expect(resource?.DependsOn).toEqual(expect.arrayContaining(readers));
    }
  });

  test('reserve no concurrency: a new account has none to spare', () => {
    for (const [, resource] of resourcesOf(template, 'AWS::Lambda::Function')) {
      expect(resource.Properties).not.toHaveProperty('ReservedConcurrentExecutions');
    }
  });

  test('that answer calls reserve what reservedConcurrency says, and know it', () => {
    const functions = resourcesOf(synthesize({ reservedConcurrency: 40 }).template, 'AWS::Lambda::Function');
    const reserving = functions.flatMap(([id, { Properties }]) => {
      const { Variables } = Properties.Environment as { Variables: Record<string, unknown> };
      const reserved = Properties['ReservedConcurrentExecutions'];
      const known = Variables['RELAY_CONCURRENCY'];
      const name = id.replace(/^Functions([a-z]+)Function.*$/, '$1');
      return reserved === undefined && known === undefined ? [] : [[name, reserved, known]];
    });
    expect(reserving).toEqual([
      ['chat', 40, '40'],
      ['responses', 40, '40'],
    ]);
  });

  test('know the public host where it is given, to refuse channels that lead there', () => {
    const certificateArn = `arn:aws:acm:us-east-1:123456789012:certificate/${'1'.repeat(8)}`;
    const { template: own } = synthesize({ domain: 'api.example.com', certificateArn });
    const knowing = resourcesOf(own, 'AWS::Lambda::Function').filter(([, { Properties }]) =>
      JSON.stringify(Properties.Environment).includes('"RELAY_PUBLIC_HOST":"api.example.com"'),
    );
    expect(knowing.map(([id]) => id.replace(/^Functions([a-z]+)Function.*$/, '$1'))).toEqual(['config']);
  });

  test('that no request reaches have no URL and know no origin secret', () => {
    const reached = resourcesOf(template, 'AWS::Lambda::Url').map(([id]) => id);
    // One of the alias, and for one release that of the function itself.
    expect(reached).toHaveLength(8);
    for (const name of ['config', 'ledger', 'grants', 'sweeper']) {
      const { Environment } = only('AWS::Lambda::Function', `Functions${name}Function`);
      expect(Environment).toMatchObject({ Variables: { ORIGIN_SECRETS: '' } });
    }
  });

  test('that answer calls know every seal key, and no other does', () => {
    const knowing = resourcesOf(template, 'AWS::Lambda::Function').flatMap(([id, { Properties }]) => {
      const { SEAL_KEYS: keys } = (Properties.Environment as { Variables: Record<string, unknown> })
        .Variables;
      return keys === undefined ? [] : [[id, readable(keys)] as const];
    });
    expect(knowing.map(([id]) => id.replace(/^Functions([a-z]+)Function.*$/, '$1'))).toEqual([
      'chat',
      'responses',
      'background',
    ]);
    for (const [, keys] of knowing)
      expect(keys).toMatch(
        /^\{"1":"\{\{resolve:secretsmanager:<SealKeysSecret1\w+>:SecretString:::\}\}","2":"\{\{resolve:secretsmanager:<SealKeysSecret2\w+>:SecretString:::\}\}"\}$/,
      );
  });

  test('name end users by what a stack keeps for ever, whichever of them answers', () => {
    const keys = resourcesOf(template, 'AWS::Lambda::Function').flatMap(([, { Properties }]) => {
      const { PSEUDONYM_KEY: key } = (Properties.Environment as { Variables: Record<string, unknown> })
        .Variables;
      return key === undefined ? [] : [key];
    });
    expect(keys).toEqual(Array.from({ length: 3 }, () => ({ Ref: 'AWS::StackId' })));
  });

  test('know their stack, their version and every origin secret, and nothing else', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const [, resource] of resourcesOf(template, 'AWS::Lambda::Function')) {
      // Functions that answer have the keys of seals and the bound of their heap beside these, and what runs the rest.
      const {
        SEAL_KEYS: _,
        PSEUDONYM_KEY: ____,
        NODE_OPTIONS: __,
        BACKGROUND_FUNCTION: ___,
        ...Variables
      } = (resource.Properties.Environment as { Variables: Record<string, unknown> }).Variables;
      expect(Object.keys(Variables).toSorted()).toEqual(['ORIGIN_SECRETS', 'RELAY_STACK', 'RELAY_VERSION']);
      expect(Variables).toMatchObject({ RELAY_STACK: 'relay-test', RELAY_VERSION: version });
      if (Variables.ORIGIN_SECRETS === '') continue;
      expect(readable(Variables.ORIGIN_SECRETS)).toMatch(
        /^\{\{resolve:secretsmanager:<OriginSecret1\w+>:SecretString:::\}\},\{\{resolve:secretsmanager:<OriginSecret2\w+>:SecretString:::\}\}$/,
      );
    }
  });

  test('that run background responses get events of a minute at most, once each, and failed ones are kept', () => {
    const [[, config] = []] = resourcesOf(template, 'AWS::Lambda::EventInvokeConfig');
    expect(config?.Properties).toMatchObject({
      MaximumEventAgeInSeconds: 60,
      MaximumRetryAttempts: 0,
      Qualifier: '$LATEST',
    });
    expect(readable(config?.Properties.FunctionName)).toMatch(/^<FunctionsbackgroundFunction/);
    expect(JSON.stringify(config?.Properties.DestinationConfig)).toContain('TriggersFailures');
    expect(
      resourcesOf(template, 'AWS::Lambda::Url')
        .map(([id]) => id)
        .join(),
    ).not.toContain('background');
  });

  test('never get the variable of the local stack', () => {
    expect(JSON.stringify(template)).not.toContain('RELAY_LOCAL');
  });

  test('are all watched for crashes, each in one way, and those that answer for refused environments', () => {
    interface Looked {
      MetricName?: string;
      Dimensions: { Value: unknown }[];
    }
    const watched = (id: string, metric: string): string[] => {
      const [, alarm] =
        resourcesOf(template, 'AWS::CloudWatch::Alarm').find(([name]) => name.startsWith(`Alarms${id}`)) ??
        [];
      const queries = alarm?.Properties.Metrics as { MetricStat?: { Metric: Looked } }[] | undefined;
      const looked = queries?.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []) ?? [
        alarm?.Properties as unknown as Looked,
      ];
      return looked.flatMap(({ MetricName, Dimensions }) =>
        MetricName === metric
          ? readable(Dimensions[0]?.Value).replace(/^<Functions([a-z]+)Function.*$/, '$1')
          : [],
      );
    };
    const crashes = [
      ...watched('AvailabilityPage', 'Errors'),
      ...watched('FunctionErrors', 'Errors'),
      ...watched('ServerErrors', 'Url5xxCount'),
      ...watched('StreamsBehind', 'IteratorAge'),
      // They write a number in each run: BadRows, SweeperStopped.
      'config',
      'sweeper',
      // The sweeper counts the reservation of a run that died: NeedsAPerson.
      'background',
    ];
    expect(crashes.toSorted()).toEqual(functionNames.toSorted());
    expect(watched('AvailabilityPage', 'Errors')).toEqual(['chat', 'responses']);
    expect(watched('FunctionThrottles', 'Throttles')).toEqual(['chat', 'responses']);
    expect(watched('ServerErrors', 'Url5xxCount')).toEqual(['catalog', 'payments']);
  });

  test('with a URL have it on their alias, and keep versions that lose their traffic', () => {
    for (const name of ['chat', 'responses', 'catalog', 'payments']) {
      expect(only('AWS::Lambda::Url', `Functions${name}Live`)).toMatchObject({ Qualifier: 'live' });
      const [, version] =
        resourcesOf(template, 'AWS::Lambda::Version').find(([id]) => id.startsWith(`Functions${name}F`)) ??
        [];
      expect(version).toMatchObject({
        DeletionPolicy: 'RetainExceptOnCreate',
        UpdateReplacePolicy: 'Retain',
      });
    }
    expect(resourcesOf(template, 'AWS::Lambda::Alias')).toHaveLength(4);
  });

  test('move all calls at once, and look at no version alone, with shifting off', () => {
    const { template: own } = synthesize({ shifting: false });
    expect(resourcesOf(own, 'AWS::CodeDeploy::DeploymentGroup')).toEqual([]);
    expect(JSON.stringify(own)).not.toContain('CodeDeployLambdaAliasUpdate');
    expect(resourcesOf(own, 'AWS::CloudWatch::Alarm')).toHaveLength(14);
    expect(resourcesOf(own, 'AWS::Lambda::Alias')).toHaveLength(4);
  });
});
