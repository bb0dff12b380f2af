import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createApp } from '../../infra/stack/create-app.ts';
import { optionsSchema } from '../scripts/options-schema.ts';
import {
  selectPublishedOptions,
  readOutputs,
  writeOutputs,
} from '../../infra/stack/options/published-options.ts';
import { readOptions, readStageFile, resolveStage } from '../../infra/stack/options/read-options.ts';
import { resourcesOf, synthesize } from './synthesize.ts';

const relay = resolveStage(undefined);
const keyArn = 'arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012';
const vpc = { subnetIds: ['subnet-0123456789abcdef0'], securityGroupIds: ['sg-0123456789abcdef0'] };
const vpcEndpointIds = ['vpce-0123456789abcdef0'];
const staff = Array.from({ length: 200 }, (_, at) => `person-${at}@example.com`);
const refunding = (supportRefundYuanADay: number) => ({
  ...consoleOf(['a@example.com']),
  supportRefundYuanADay,
});
const consoleOf = (operator: string[]) => ({
  oidc: { issuer: 'https://issuer.example.com', clientId: 'relay', clientSecret: 'ssm:/relay/relay/console' },
  roles: { operator },
});
const aclOf = (region: string, scope: string) =>
  `arn:aws:wafv2:${region}:123456789012:${scope}/webacl/company/12345678-1234-1234-1234-123456789012`;
const certificateArn = 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';

/** The secrets of one option, found by a part of their ids. */
function secretIds(option: 'originSecrets' | 'sealKeys', numbers: number[]): string[] {
  const secrets = resourcesOf(synthesize({ [option]: numbers }).template, 'AWS::SecretsManager::Secret');
  const part = { originSecrets: 'Origin', sealKeys: 'SealKeys' }[option];
  return secrets.map(([id]) => id).filter((id) => id.startsWith(part));
}

describe('options', () => {
  test.each(['originSecrets', 'sealKeys'] as const)(
    'each number in %s creates its own secret, whose identity no other number changes',
    (option) => {
      const [first, second] = secretIds(option, [1, 2]);
      expect(second).toBeDefined();
      expect(secretIds(option, [1])).toEqual([first]);
      expect(secretIds(option, [2])).toEqual([second]);
    },
  );

  test.each([
    [{ domain: 'api.example.com' }, /domain: also needs certificateArn/],
    [{ certificateArn }, /certificateArn: also needs domain/],
    [
      { domain: 'api.example.com', certificateArn: certificateArn.replace('us-east-1', 'eu-west-1') },
      /certificateArn: is in eu-west-1, expected one in us-east-1, the one region CloudFront reads certificates from/,
    ],
    [{ domain: 'https://api.example.com', certificateArn }, /domain: .*expected a lower-case host name/],
    [{ console: consoleOf([]) }, /console\.roles: nobody could log in/],
    [
      { console: consoleOf(staff) },
      /console: more than 3000 bytes do not fit into its function: list groups instead of people/,
    ],
    [
      { console: refunding(0.1234567891) },
      /console\.supportRefundYuanADay: found 0.1234567891, expected yuan .*9 dec/,
    ],
    [{ console: refunding(-1) }, /console\.supportRefundYuanADay: found -1, expected yuan from 0 to 1000000/],
    [{ shifting: 'canary' }, /shifting: found "canary", expected true, false or "linear"/],
    [{ disposable: 'yes' }, /disposable: found "yes", expected true or false/],
    [{ alarmEmail: 'nobody' }, /alarmEmail: .*expected an e-mail address/],
    [{ originSecrets: [] }, /originSecrets: .*expected a list of 1 to 3 different whole numbers/],
    [{ sealKeys: [2, 1] }, /sealKeys: found \[2,1\], expected ascending numbers/],
    [{ reservedConcurrency: 0 }, /reservedConcurrency: found 0, expected a whole number from 1 to 100000/],
    [{ memory: { chat: 64 } }, /memory\.chat: found 64, expected a whole number from 128 to 10240/],
    [{ memory: { chta: 512 } }, /memory\.chta: not a field of memory; did you mean chat\?/],
    [{ memory: 512 }, /memory: found 512, expected a map \{chat, /],
    [{ logRetentionDays: 31 }, /logRetentionDays: found 31, expected one of 1, 3, 5/],
    [{ limits: { account_rpm: 0 } }, /limits\.account_rpm: found 0/],
    [
      { limits: { account_concurrency: 50 }, reservedConcurrency: 40 },
      /limits\.account_concurrency: more than reservedConcurrency, which is 40/,
    ],
    [{ tracing: { endpoint: 'http://otel.example.com' } }, /tracing\.endpoint: .*expected an https address/],
    [
      { tracing: { endpoint: 'https://otel.example.com', headersSecret: 'x-key: 1' } },
      /tracing\.headersSecret: .*expected the name of a secret/,
    ],
    [
      { tracing: { endpoint: 'https://otel.example.com', share: 2 } },
      /tracing\.share: found 2, expected a number/,
    ],
    [{ webAcl: true }, /webAcl: also needs region/],
    [
      { frontDoor: 'edge' },
      /frontDoor: found "edge", expected one of cloudfront, cloudfront-api, api, private-api/,
    ],
    [
      { vpc },
      /vpc: frontDoor is "cloudfront": Function URLs do not stream from a VPC; use a front door of API Gateway/,
    ],
    [
      { frontDoor: 'api', vpc: { ...vpc, subnetIds: ['x'] } },
      /vpc.subnetIds\[0\]: found "x", expected a list of/,
    ],
    [
      { frontDoor: 'api', vpcEndpointIds },
      /vpcEndpointIds: frontDoor is "api": only a private API uses them/,
    ],
    [
      { frontDoor: 'private-api' },
      /vpcEndpointIds: required: a private API can only be called through VPC endpoints/,
    ],
    [
      { frontDoor: 'private-api', vpcEndpointIds, domain: 'api.example.com', certificateArn },
      /domain: frontDoor is "private-api": a private API always has the host name of API Gateway/,
    ],
    [
      { frontDoor: 'private-api', vpcEndpointIds, canary: { model: 'm', key: 'ssm:/relay/relay/canary' } },
      /canary: also needs vpc: a private API can only be called from a VPC/,
    ],
    [
      { frontDoor: 'api', originSecrets: [1] },
      /originSecrets: frontDoor is "api": only API Gateway may call/,
    ],
    [{ frontDoor: 'api', accessLog: true }, /accessLog: frontDoor is "api": only CloudFront writes it/],
    [
      { frontDoor: 'api', region: 'eu-west-1', edgeAlarms: true, alarmEmail: 'ops@example.com' },
      /edgeAlarms: frontDoor is "api": there is no CloudFront to watch/,
    ],
    [{ frontDoor: 'api', webAcl: aclOf('us-east-1', 'global') }, /webAcl: .*expected an ACL of the region/],
    [{ webAcl: aclOf('eu-west-1', 'regional') }, /webAcl: .*expected an ACL of CloudFront/],
    [
      { frontDoor: 'api', region: 'eu-west-1', domain: 'api.example.com', certificateArn },
      /certificateArn: is in us-east-1, expected one in eu-west-1, the region of the API/,
    ],
    [
      { accessLog: 'Company' },
      /accessLog: found "Company", expected true, or the name of a bucket with ACLs/,
    ],
    [{ accessLog: true, region: 'eu-south-1' }, /accessLog: CloudFront can't deliver logs to .* eu-south-1/],
    [{ edgeAlarms: true }, /edgeAlarms: also needs region/],
    [
      { webAcl: 'arn:aws:wafv2:eu-west-1:1:x' },
      /webAcl: .*expected true, or the ARN of a WAF ACL: of CloudFront/,
    ],
    [{ webAclRequestsPerMinute: 100 }, /webAclRequestsPerMinute: .*also needs webAcl true/],
    [
      { region: 'eu-central-1', alarmTopicArn: 'arn:aws:sns:eu-west-1:123456789012:ops' },
      /alarmTopicArn: is in eu-west-1, expected one in eu-central-1/,
    ],
    [
      { region: 'eu-central-1', ledgerStream: 'arn:aws:kinesis:eu-west-1:123456789012:stream/lake' },
      /ledgerStream: is in eu-west-1, expected one in eu-central-1/,
    ],
    [
      { region: 'eu-central-1', encryptionKeyArn: keyArn },
      /encryptionKeyArn: is in us-east-1, expected one in eu-central-1/,
    ],
    [{ budget: { monthlyUsd: 100 } }, /budget: nobody would be notified/],
    [{ budget: { email: 'ops@example.com' } }, /budget\.monthlyUsd: found nothing, expected a whole number/],
    [
      { hostedZone: { id: 'Z012345678', name: 'example.org' }, domain: 'api.example.com', certificateArn },
      /hostedZone\.name: the domain api\.example\.com is not in the zone example\.org/,
    ],
    [{ region: 'eu-central-1', edgeAlarms: true }, /edgeAlarms: nobody would be notified/],
    [
      {
        region: 'eu-central-1',
        edgeAlarms: true,
        alarmTopicArn: 'arn:aws:sns:eu-central-1:123456789012:ops',
      },
      /edgeAlarms: nobody would be notified/,
    ],
    [{ compute: 'web' }, /compute: found "web", expected functions or ecs/],
    [{ service: { tasksMin: 3 } }, /service: also needs compute ecs/],
    [
      { compute: 'ecs', service: { tasksMin: 11, tasksMax: 10 } },
      /service\.tasksMin: more than tasksMax, which is 10/,
    ],
    [
      { compute: 'ecs', service: { image: 'relay' } },
      /service\.image: found "relay", expected an image with its tag/,
    ],
    [
      {
        compute: 'ecs',
        service: {
          vpc: {
            id: 'vpc-01234567',
            zones: ['us-east-1a', 'us-east-1b'],
            subnets: ['subnet-01234567', 'subnet-01234568', 'subnet-01234569'],
          },
        },
      },
      /service\.vpc\.subnets: must have one subnet for each zone/,
    ],
    [
      { compute: 'ecs', service: { zones: ['us-east-1a', 'us-east-1b'] } },
      /service\.zones\[0\]: found "us-east-1a", expected the ids of two availability zones/,
    ],
    [
      { compute: 'ecs', region: 'ap-southeast-2', service: { zones: ['apse2-az1', 'use1-az1'] } },
      /service\.zones: use1-az1 is not in ap-southeast-2, whose zone ids start with apse2-/,
    ],
    [
      { compute: 'ecs', service: { zones: ['use1-az1', 'use1-az1'] } },
      /service\.zones: found \["use1-az1","use1-az1"\], expected the ids of two availability zones/,
    ],
    [
      { compute: 'ecs', service: { zones: ['use1-az1', 'use1-az3'] } },
      /service: CloudFront's VPC origins can't reach a load balancer in use1-az3: use another zone/,
    ],
    [{ compute: 'ecs', reservedConcurrency: 5 }, /reservedConcurrency: is only for functions that answer/],
    [{ compute: 'ecs', memory: { chat: 512 } }, /memory: chat, responses, .* do not exist with compute ecs/],
    [[], /relay\.json: expected one JSON object of options/],
    [{ constructor: 1 }, /constructor: not an option/],
  ])('%j is rejected with a message that names the expected value', (content, message) => {
    expect(() => readOptions(relay, content)).toThrow(message);
  });

  test('a file with several errors is rejected with one message that lists all of them by field', () => {
    const content = {
      $schema: './relay.schema.json',
      domian: 'api.example.com',
      certificate: certificateArn,
      reservedConcurrency: 0,
      memory: { chat: 1 },
      stage: 'prod',
    };
    expect(() => readOptions(relay, content)).toThrow(
      [
        'relay.json has 5 problems:',
        '  domian: not an option; did you mean domain?',
        '  certificate: not an option; did you mean certificateArn?',
        '  reservedConcurrency: found 0, expected a whole number from 1 to 100000',
        '  memory.chat: found 1, expected a whole number from 128 to 10240',
        '  stage: not an option; docs/options.md lists them',
      ].join('\n'),
    );
  });

  test.each(['ap-southeast-4', 'eu-central-2', 'cn-north-1'])(
    'region %s, where answers cannot stream, is rejected by name, in the file and in the environment',
    (region) => {
      expect(() => readOptions(relay, { region })).toThrow(
        new RegExp(`region: found "${region}".*${region}`),
      );
      const app = { outputFolder: tmpdir(), options: {}, region };
      expect(() => createApp(app)).toThrow(new RegExp(`AWS_REGION: .*${region}`));
    },
  );
});

describe('the file of a stage', () => {
  const folder = mkdtempSync(join(tmpdir(), 'relay-options-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  test('is relay.json or relay.<stage>.json, and no other file is read', () => {
    writeFileSync(join(folder, 'relay.json'), '{"sealKeys": [1, 2]}');
    writeFileSync(join(folder, 'relay.test.json'), '{"sealKeys": [3]}');
    expect(readStageFile(folder, resolveStage(undefined))).toEqual({ sealKeys: [1, 2] });
    expect(readStageFile(folder, resolveStage('test'))).toEqual({ sealKeys: [3] });
  });

  test('is rejected by name if it is missing or not JSON', () => {
    expect(() => readStageFile(folder, resolveStage('prod'))).toThrow(
      /relay\.prod\.json does not exist: create it beside package\.json with the options of stack relay-prod/,
    );
    writeFileSync(join(folder, 'relay.half.json'), '{"domain":');
    expect(() => readStageFile(folder, resolveStage('half'))).toThrow(/relay\.half\.json is not JSON/);
  });

  test.each(['Prod', '1a', 'a'.repeat(22), '../x', 'schema', 'edge-eu-west-1', ''])(
    'is not read for %j, which is not a valid stage name',
    (stage) => {
      expect(() => resolveStage(stage)).toThrow(/stage: found .*expected a lower-case name/);
    },
  );

  test('of the default stage is committed, sets no option, and names the schema', () => {
    expect(JSON.parse(readFileSync('relay.json', 'utf8'))).toEqual({ $schema: './relay.schema.json' });
  });

  test('has a schema that matches the reader: node test/scripts/options-schema.ts writes it', () => {
    expect(JSON.parse(readFileSync('relay.schema.json', 'utf8'))).toEqual(optionsSchema());
  });
});

describe('an option in the context', () => {
  test('is rejected with the name of the stage file for it, because the next deployment would forget it', () => {
    const context = {
      stage: 'test',
      alarmEmail: 'ops@example.com',
      originSecrets: '[1,2]',
      disposable: true,
    };
    expect(() => createApp({ outputFolder: tmpdir(), context, options: {} })).toThrow(
      'the next deployment would lose them. Write them into relay.test.json: disposable, alarmEmail, originSecrets',
    );
  });
});

describe('the published options', () => {
  const optionsOf = (content: Record<string, unknown>) => selectPublishedOptions(readOptions(relay, content));

  test('are those that differ from their defaults, a map field by field', () => {
    expect(
      optionsOf({ alarms: true, originSecrets: [1], memory: { chat: 512 }, sealKeys: [1, 2], webAcl: false }),
    ).toEqual({ 'memory.chat': 512, sealKeys: [1, 2] });
  });

  test('are read back from the outputs of a stack at any length, and are undefined without that output', () => {
    const published = { alarmEmail: 'ä'.repeat(2500) };
    const outputs = writeOutputs(published);
    expect(outputs.map(([name, value]) => [name, value.length])).toEqual([
      ['Options', 1000],
      ['Options2', 1000],
      ['Options3', 517],
    ]);
    expect(readOutputs(new Map(outputs.toReversed()))).toEqual(published);
    expect(readOutputs(new Map(writeOutputs({})))).toEqual({});
    expect(readOutputs(new Map([['BaseUrl', 'https://api.example.com/v1']]))).toBeUndefined();
  });
});
