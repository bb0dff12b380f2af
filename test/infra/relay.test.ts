/** The construct as adopters use it: what it exposes, accepts and rejects. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Annotations, App, CfnOutput, Fn, NestedStack, Stack, type Environment } from 'aws-cdk-lib';
import { Annotations as WarningsOf, Match } from 'aws-cdk-lib/assertions';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import { InterfaceVpcEndpointAwsService, SecurityGroup, SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { HostedZone, type IHostedZone } from 'aws-cdk-lib/aws-route53';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutReport } from '../../infra/stack/create-app.ts';
import { answeringFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { Relay, type RelayProps } from '../../infra/stack/relay.ts';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import {
  readable,
  resourcesOf,
  sharedBundles,
  synthesizeApp,
  withoutCopies,
  type Template,
} from './synthesize.ts';

const here = { account: '123456789012', region: 'eu-central-1' };
const keyArn = 'arn:aws:kms:eu-central-1:123456789012:key/0b9c7b4e';
const topicArn = 'arn:aws:sns:eu-central-1:123456789012:alarms';
const certificateArn = 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';

let folder: string;
const bundlesFolder = sharedBundles();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-construct-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

const newApp = (): App =>
  new App({
    outdir: mkdtempSync(join(folder, 'out-')),
    builtinCloudFormationValidation: false,
    treeMetadata: false,
    context: { ...withoutReport, ...withoutCopies },
  });

const newStack = (app = newApp(), env: Environment = here, id = 'Models'): Stack =>
  new Stack(app, id, { env });

const newRelay = (stack: Stack, props: RelayProps = {}, id = 'Relay'): Relay =>
  new Relay(stack, id, { bundlesFolder, ...props });

function templateOf(stack: Stack): Template {
  const app = stack.node.root as App;
  return synthesizeApp(app).getStackArtifact(stack.artifactId).template as Template;
}

const policiesOf = (template: Template, start: string): string =>
  JSON.stringify(resourcesOf(template, 'AWS::IAM::Policy').filter(([id]) => id.startsWith(start)));

test('servers accept a VPC and an image of the app, run in its private subnets without public addresses, and are exposed', () => {
  const stack = newStack();
  const vpc = new Vpc(stack, 'Vpc', { maxAzs: 2 });
  const image = ContainerImage.fromRegistry('registry.example.com/relay:1');
  const relay = newRelay(stack, { compute: 'ecs', service: { vpc, image, tasksMin: 4 } });
  expect(relay.service?.vpc).toBe(vpc);
  expect(Object.keys(relay.functionUrls)).toEqual(['payments', 'selfservice']);
  const service = resourcesOf(templateOf(stack), 'AWS::ECS::Service').at(0)?.[1];
  const subnets = vpc.privateSubnets.map(({ subnetId }) => stack.resolve(subnetId) as unknown);
  expect(service?.Properties).toMatchObject({
    NetworkConfiguration: { AwsvpcConfiguration: { AssignPublicIp: 'DISABLED', Subnets: subnets } },
  });
  expect(() => newRelay(newStack(), { compute: 'ecs', service: { tasksMin: 0 } })).toThrow(
    /service\.tasksMin: found 0/,
  );
});

test('servers in a new VPC use the zones that are set by id, and synthesis warns if none are set', () => {
  const synthesizeZones = (service: RelayProps['service']) => {
    const stack = newStack(newApp(), { ...here, region: 'us-east-1' });
    const image = ContainerImage.fromRegistry('registry.example.com/relay:1');
    newRelay(stack, { compute: 'ecs', service: { image, ...service } });
    const subnets = resourcesOf(templateOf(stack), 'AWS::EC2::Subnet');
    const warnings = stack.node
      .findAll()
      .flatMap(({ node }) => node.metadata.map(({ data }) => String(data)));
    return {
      zones: subnets.map(
        ([
          ,
          {
            Properties: { AvailabilityZone, AvailabilityZoneId },
          },
        ]) => [AvailabilityZone, AvailabilityZoneId],
      ),
      warned: warnings.some((text) => text.includes('service.zones')),
    };
  };
  expect(synthesizeZones({ zones: ['use1-az1', 'use1-az6'] })).toEqual({
    zones: [
      [undefined, 'use1-az1'],
      [undefined, 'use1-az6'],
    ],
    warned: false,
  });
  expect(synthesizeZones({}).warned).toBe(true);
});

describe('functions in a VPC', () => {
  const inside = { frontDoor: 'api' } as const;

  test('accept a VPC, subnets and security groups as CDK’s own functions do, and wait for the routes', () => {
    const stack = newStack();
    const vpc = new Vpc(stack, 'Vpc', { maxAzs: 2 });
    newRelay(stack, { ...inside, vpc });
    const template = templateOf(stack);
    const routes = resourcesOf(template, 'AWS::EC2::Route').map(([id]) => id);
    const functions = resourcesOf(template, 'AWS::Lambda::Function').filter(([id]) => id.startsWith('Relay'));
    const group = resourcesOf(template, 'AWS::EC2::SecurityGroup').map(([id]) => id);
    expect(group).toHaveLength(1);
    const SubnetIds = vpc.privateSubnets.map(({ subnetId }) => stack.resolve(subnetId) as unknown);
    for (const [, { Properties, DependsOn }] of functions) {
      const SecurityGroupIds = [{ 'Fn::GetAtt': [group[0], 'GroupId'] }];
      expect(Properties['VpcConfig']).toEqual({ SubnetIds, SecurityGroupIds });
      expect(routes.filter((id) => DependsOn?.includes(id))).not.toEqual([]);
    }
    const given = newStack();
    const own = new Vpc(given, 'Vpc', {
      natGateways: 0,
      subnetConfiguration: [{ name: 'inner', subnetType: SubnetType.PRIVATE_ISOLATED }],
    });
    const groups = [new SecurityGroup(given, 'Group', { vpc: own })];
    newRelay(given, {
      ...inside,
      vpc: own,
      vpcSubnets: { subnetGroupName: 'inner' },
      securityGroups: groups,
    });
    expect(resourcesOf(templateOf(given), 'AWS::EC2::SecurityGroup')).toHaveLength(1);
  });

  test('get a security group if the list of groups is empty, because Lambda requires one', () => {
    const stack = newStack();
    newRelay(stack, { ...inside, vpc: new Vpc(stack, 'Vpc', { maxAzs: 2 }), securityGroups: [] });
    expect(resourcesOf(templateOf(stack), 'AWS::EC2::SecurityGroup')).toHaveLength(1);
  });

  test.each([{}, { publicSubnetIds: ['subnet-1'] }])(
    'of servers need two zones, which an imported VPC with %j lacks',
    (imported) => {
      const stack = newStack();
      const vpc = Vpc.fromVpcAttributes(stack, 'Vpc', {
        vpcId: 'vpc-1',
        availabilityZones: ['eu-central-1a'],
        ...imported,
      });
      expect(() => newRelay(stack, { compute: 'ecs', service: { vpc } })).toThrow(
        /service\.vpc: a load balancer needs subnets in two availability zones/,
      );
    },
  );

  test('may be behind a private API whose endpoint the app creates', () => {
    const stack = newStack();
    const vpc = new Vpc(stack, 'Vpc', { maxAzs: 2 });
    const { vpcEndpointId } = vpc.addInterfaceEndpoint('Door', {
      service: InterfaceVpcEndpointAwsService.APIGATEWAY,
    });
    const relay = newRelay(stack, { frontDoor: 'private-api', vpcEndpointIds: [vpcEndpointId], vpc });
    expect(relay.distribution).toBeUndefined();
  });

  test.each([
    [{}, {}, /vpc: frontDoor is "cloudfront": Function URLs do not stream from a VPC/],
    [inside, { vpcSubnets: { subnetType: SubnetType.PUBLIC } }, /reach the internet from a public subnet/],
    [inside, { vpc: undefined, securityGroups: [] }, /vpcSubnets and securityGroups need vpc as an object/],
  ])('are rejected with %j and %j', (door, network, says) => {
    const stack = newStack();
    const vpc = new Vpc(stack, 'Vpc', { maxAzs: 2 });
    expect(() => newRelay(stack, { ...door, vpc, ...network })).toThrow(says);
  });
});

describe('a relay exposes', () => {
  test('its URLs, tables, functions, alarms and their topic', () => {
    const stack = newStack();
    const relay = newRelay(stack, { name: 'models', alarmEmail: 'ops@example.com' });
    expect(Object.keys(relay.tables)).toEqual(tableNames);
    expect(Object.keys(relay.functionUrls)).toEqual([
      ...answeringFunctions,
      'catalog',
      'payments',
      'selfservice',
    ]);
    expect(Object.keys(relay.functions)).toEqual(expect.arrayContaining(['chat', 'ledger', 'notify']));
    const resolve = (value: unknown): string => readable(stack.resolve(value));
    expect(resolve(relay.tables.keys.tableName)).toMatch(/^<RelayTableskeys\w+>$/);
    expect(resolve(relay.baseUrl)).toMatch(/^https:\/\/<Relay\w*Distribution\w+.DomainName>\/v1$/);
    expect(resolve(relay.alarmTopic?.topicArn)).toMatch(/^<RelayAlarmsTopic\w+>$/);
    expect(relay.alarms.length).toBeGreaterThan(5);
    expect(newRelay(newStack()).alarmTopic).toBeUndefined();
  });

  test('metrics with its own name, account and region', () => {
    const relay = newRelay(newStack(), { name: 'models' });
    const { metricStat } = relay.metric('Failures').toMetricConfig();
    expect(metricStat).toMatchObject({
      namespace: 'relay',
      metricName: 'Failures',
      dimensions: [{ name: 'stack', value: 'models' }],
      statistic: 'Sum',
    });
    expect(relay.metric('FirstContentMs', { statistic: 'p99' }).statistic).toBe('p99');
    expect(relay.metric('PromptTokens', { label: 'tokens' })).toMatchObject({
      metricName: 'PromptTokens',
      label: 'tokens',
    });
    expect(relay.metric('Requests')).toMatchObject(here);
  });
});

describe('a name', () => {
  test.each(['Relay', '1relay', 'a'.repeat(28), 'my_relay', ''])('%j is refused', (name) => {
    expect(() => newRelay(newStack(), { name })).toThrow(/name is .*, expected a lower-case letter/);
  });

  test('is rejected for a second relay of the same stack, or of another stack in the same account and region', () => {
    const app = newApp();
    newRelay(newStack(app), { name: 'models' });
    expect(() => newRelay(newStack(app, here, 'Other'), { name: 'models' })).toThrow(
      'Other/Relay and Models/Relay are both named models in one account and region',
    );
    const stack = newStack(newApp(), {});
    newRelay(stack);
    expect(() => newRelay(stack, {}, 'Second')).toThrow('are both named relay');
    expect(() => newRelay(new NestedStack(stack, 'Nested'))).toThrow('are both named relay');
  });

  test('may repeat in another region or account, or in stacks without a fixed environment', () => {
    const app = newApp();
    newRelay(newStack(app));
    newRelay(newStack(app, { ...here, region: 'us-east-1' }, 'OtherRegion'));
    newRelay(newStack(app, { ...here, account: '999999999999' }, 'OtherAccount'));
    newRelay(newStack(app, {}, 'Anywhere'));
    expect(() => newRelay(newStack(app, {}, 'AnywhereElse'))).not.toThrow();
  });
});

test('a relay in a nested stack is complete, and its parent can use it', () => {
  const stack = newStack(newApp(), {});
  const nested = new NestedStack(stack, 'Nested');
  const relay = newRelay(nested);
  const output = new CfnOutput(stack, 'Address', { value: relay.baseUrl });
  const template = templateOf(stack);
  expect(readable(template.Outputs[output.node.id]?.Value)).toMatch(/^https:\/\/<\w+.Outputs.\w+>\/v1$/);
  expect(relay.metric('Failures').toMetricConfig().metricStat?.dimensions).toEqual([
    { name: 'stack', value: 'relay' },
  ]);
});

describe('a prop that is invalid in the options of a stage', () => {
  test.each([
    [{ originSecrets: [] }, 'originSecrets: found [], expected a list of 1 to 3'],
    [{ sealKeys: [2, 1] }, 'sealKeys: found [2,1], expected ascending numbers'],
    [{ objectives: { availabilityPercent: 90 } }, 'objectives.availabilityPercent: found 90'],
    [{ defaultLimits: { account_rpm: 0 } }, 'defaultLimits.account_rpm: found 0'],
    [
      { canary: { model: 'gpt', key: 'sk-live' } },
      'canary.key: found "sk-live", expected the reference of a key',
    ],
    [{ memory: { chat: 64 } }, 'memory.chat: found 64'],
    [{ alarmMail: 'ops@example.com' }, 'alarmMail: not a prop; did you mean alarmEmail?'],
    [{ encryptionKeyArn: keyArn }, 'encryptionKeyArn: not a prop; did you mean encryptionKey?'],
    [{ encryptionKey: keyArn }, `encryptionKey: found "${keyArn}", expected an object of CDK`],
    [
      { encryptionKeys: { logs: keyArn } },
      `encryptionKeys.logs: found "${keyArn}", expected an object of CDK`,
    ],
    [{ vpc: {} }, 'vpc.subnetIds: found nothing, expected a list of 1 to 16 ids'],
    [
      { vpc: { subnetIds: ['subnet-0123456789abcdef0'], securityGroupIds: ['sg-0123456789abcdef0'] } },
      'vpc: frontDoor is "cloudfront": Function URLs do not stream from a VPC',
    ],
    [{ xyz: 1 }, 'xyz: not a prop'],
    [{ memory: { chatt: 256 } }, 'memory.chatt: not a field of memory; did you mean chat?'],
    [{ domain: { name: 'Api', certifcate: {} } }, 'domain.certifcate: not a prop; did you mean certificate?'],
    [{ domain: { name: 'Api' } }, 'domain.name: found "Api", expected a lower-case host name'],
    [{ webAclArn: 'arn:aws:wafv2:eu-west-1:1:x' }, 'webAclArn: found'],
    [
      { defaultLimits: { account_concurrency: 50 }, reservedConcurrency: 40 },
      'defaultLimits.account_concurrency: more than reservedConcurrency',
    ],
  ] as [RelayProps, string][])('%j is refused by name', (props, message) => {
    expect(() => newRelay(newStack(), props)).toThrow(`Models/Relay: ${message}`);
  });

  test('a new bucket for the log at the edge is rejected in a region to which CloudFront cannot deliver it', () => {
    const stack = newStack(newApp(), { region: 'me-south-1' });
    expect(() => newRelay(stack, { accessLog: true })).toThrow(
      "Models/Relay: accessLog: CloudFront can't deliver logs",
    );
  });

  test('is also rejected in an object without a prototype, as some parsers create', () => {
    const memory = Object.assign(Object.create(null) as object, { chat: 64 });
    expect(() => newRelay(newStack(), { memory })).toThrow('Models/Relay: memory.chat: found 64');
  });

  test('is accepted if only CloudFormation knows its value', () => {
    const webAclArn = Fn.getStackOutput('edge', 'WebAclArn', 'us-east-1');
    const stack = newStack(newApp(), {});
    const bedrockModels = [`arn:${stack.partition}:bedrock:us-east-1::foundation-model/a-1:0`];
    expect(() => newRelay(stack, { webAclArn, bedrockModels })).not.toThrow();
    const vpcEndpointIds = [Fn.importValue('endpoint')];
    expect(() => newRelay(newStack(), { frontDoor: 'private-api', vpcEndpointIds })).not.toThrow();
  });
});

describe('the warning that nobody receives alarms', () => {
  const told = (props: RelayProps, acknowledged = false): boolean => {
    const stack = newStack();
    const relay = newRelay(stack, props);
    if (acknowledged) Annotations.of(relay).acknowledgeWarning('relay:nobody-is-told');
    return (
      WarningsOf.fromStack(stack).findWarning('*', Match.stringLikeRegexp('nobody receives alarms'))
        .length === 0
    );
  };

  test('is a warning, which can be acknowledged', () => {
    expect(told({})).toBe(false);
    expect(told({}, true)).toBe(true);
  });

  test.each([{ alarmEmail: 'ops@example.com' }, { pageEmail: 'ops@example.com' }, { alarms: false }])(
    'is omitted with %j',
    (props) => {
      expect(told(props)).toBe(true);
    },
  );
});

describe('encryption keys for resources other than tables', () => {
  test('encrypt log groups, secrets, topics and buckets, and allow the services that use them', () => {
    const stack = newStack();
    const key = new Key(stack, 'Key');
    const encryptionKeys = { logs: key, secrets: key, alarmTopic: key, buckets: key, variables: key };
    newRelay(stack, { encryptionKeys, alarmEmail: 'ops@example.com', accessLog: true });
    const template = templateOf(stack);
    const expectKey = (type: string, where: string): void => {
      const found = resourcesOf(template, type);
      expect(found.length).toBeGreaterThan(0);
      for (const [id, { Properties }] of found)
        expect(JSON.stringify(Properties[where]), `${type} ${id}`).toMatch(/"Key[0-9A-F]{8}"/);
    };
    expectKey('AWS::Logs::LogGroup', 'KmsKeyId');
    expectKey('AWS::SecretsManager::Secret', 'KmsKeyId');
    expectKey('AWS::SNS::Topic', 'KmsMasterKeyId');
    expectKey('AWS::S3::Bucket', 'BucketEncryption');
    expectKey('AWS::Lambda::Function', 'KmsKeyArn');
    const policy = JSON.stringify(resourcesOf(template, 'AWS::KMS::Key'));
    for (const service of ['logs.eu-central-1', 'cloudwatch', 'delivery.logs'])
      expect(policy).toContain(`{"Service":"${service}.amazonaws.com"}`);
    const through = (start: string): string[] =>
      Array.from(
        policiesOf(template, start).matchAll(/"Fn::Join":\["",\["([a-z0-9]+)\.eu-central-1\./g),
        ([, service]) => String(service),
      );
    expect(through('RelayFunctionsledgerRole')).toEqual(['lambda', 's3']);
    expect(through('RelayFunctionschatRole')).toEqual(['lambda', 'secretsmanager', 'ssm']);
  });

  test('are rejected if they are in another region', () => {
    const stack = newStack();
    const logs = Key.fromKeyArn(stack, 'Key', keyArn.replace('eu-central-1', 'us-east-1'));
    expect(() => newRelay(stack, { encryptionKeys: { logs } })).toThrow('encryptionKeys.logs: what is in');
  });
});

test('concurrency can be reserved for the bookkeeping functions only, without a limit for calls', () => {
  const stack = newStack();
  newRelay(stack, { moneyConcurrency: 10 });
  const reserved = resourcesOf(templateOf(stack), 'AWS::Lambda::Function').flatMap(([id, { Properties }]) =>
    Properties['ReservedConcurrentExecutions'] === 10
      ? [id.replace(/^RelayFunctions|Function\w+$/g, '')]
      : [],
  );
  expect(reserved).toEqual(['config', 'ledger', 'grants', 'sweeper']);
  expect(JSON.stringify(templateOf(stack))).not.toContain('RELAY_CONCURRENCY');
});

describe('a hosted zone', () => {
  const domainIn = (stack: Stack, hostedZone: IHostedZone) => ({
    name: 'api.example.com',
    certificate: Certificate.fromCertificateArn(stack, 'Certificate', certificateArn),
    hostedZone,
  });

  test.each(['other.org', 'ample.com'])('%s that does not contain the name is rejected', (zoneName) => {
    const stack = newStack();
    const zone = HostedZone.fromHostedZoneAttributes(stack, 'Zone', { hostedZoneId: 'Z1', zoneName });
    expect(() => newRelay(stack, { domain: domainIn(stack, zone) })).toThrow(
      `domain api.example.com is not in the hosted zone ${zoneName}`,
    );
  });

  test.each(['example.com', 'api.example.com'])('%s gets both records of the name', (zoneName) => {
    const stack = newStack();
    const zone = HostedZone.fromHostedZoneAttributes(stack, 'Zone', { hostedZoneId: 'Z1', zoneName });
    newRelay(stack, { domain: domainIn(stack, zone) });
    const records = resourcesOf(templateOf(stack), 'AWS::Route53::RecordSet').map(
      ([, each]) => each.Properties,
    );
    expect(records.map(({ Name, Type }) => [Name, Type])).toEqual([
      ['api.example.com.', 'A'],
      ['api.example.com.', 'AAAA'],
    ]);
  });
});

describe('a given topic', () => {
  test.each([
    ['of another region', topicArn.replace('eu-central-1', 'us-east-1')],
    ['that keeps an order', `${topicArn}.fifo`],
  ])('%s is rejected, because alarms would stay silent', (_, arn) => {
    const stack = newStack();
    expect(() => newRelay(stack, { alarmTopic: Topic.fromTopicArn(stack, 'Topic', arn) })).toThrow(
      'alarmTopic: alarms in eu-central-1 need a standard topic there',
    );
  });

  test('with a known key lets notices use only that key', () => {
    const stack = newStack();
    newRelay(stack, { alarmTopic: Topic.fromTopicAttributes(stack, 'Topic', { topicArn, keyArn }) });
    const notify = policiesOf(templateOf(stack), 'RelayFunctionsnotify');
    expect(notify).toContain(
      `{"Action":["kms:Decrypt","kms:GenerateDataKey*"],"Effect":"Allow","Resource":"${keyArn}"}`,
    );
  });
});

describe.each([
  ['in a region', here],
  ['in a region that is open', {}],
])('a key for the tables, %s,', (_, env) => {
  test('encrypts every table, and only the roles that need it may use it, through DynamoDB only', () => {
    const stack = newStack(newApp(), env);
    const relay = newRelay(stack, { encryptionKey: Key.fromKeyArn(stack, 'Key', keyArn) });
    const reader = new Role(stack, 'Reader', { assumedBy: new ServicePrincipal('glue.amazonaws.com') });
    relay.tables.ledger.grantReadData(reader);
    const template = templateOf(stack);
    for (const [id, { Properties }] of resourcesOf(template, 'AWS::DynamoDB::GlobalTable')) {
      expect(Properties['SSESpecification'], `table ${id}`).toEqual({ SSEEnabled: true, SSEType: 'KMS' });
      expect(Properties['Replicas'], `table ${id}`).toMatchObject([
        { SSESpecification: { KMSMasterKeyId: keyArn } },
      ]);
    }
    for (const name of Object.keys(relay.functions)) {
      const policy = policiesOf(template, `RelayFunctions${name}Role`);
      expect(policy, `policy of ${name}`).toMatch(
        /kms:Decrypt.*"kms:ViaService"|"kms:ViaService".*kms:Decrypt/,
      );
      expect(policy, `policy of ${name}`).not.toMatch(
        /kms:(\*|CreateGrant|ScheduleKeyDeletion|PutKeyPolicy)/,
      );
    }
    expect(policiesOf(template, 'Reader')).toContain('kms:Decrypt');
  });
});

test('a key in another region is rejected, and so is a certificate that CloudFront cannot read', () => {
  const stack = newStack();
  const encryptionKey = Key.fromKeyArn(stack, 'Key', keyArn.replace('eu-central-1', 'us-east-1'));
  expect(() => newRelay(stack, { encryptionKey })).toThrow(
    'encryptionKey: what is in eu-central-1 needs a key there',
  );
  const elsewhere = certificateArn.replace('us-east-1', 'eu-central-1');
  const certificate = Certificate.fromCertificateArn(stack, 'Certificate', elsewhere);
  const domain = { name: 'api.example.com', certificate };
  expect(() => newRelay(newStack(), { domain })).toThrow('must be in the us-east-1 region');
});
