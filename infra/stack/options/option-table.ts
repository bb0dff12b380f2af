/**
 * Every option of a deployment, one entry each: its value, its default, what it does. The reader of `relay.<stage>.json`,
 * the schema beside it, the published options and docs/options.md follow from this table.
 */
import * as z from 'zod/mini';
import { parseYuan } from '../../../shared/billing/money.ts';
import { LimitsValue } from '../../../shared/config/setting-rows.ts';
import { runMinutesMax } from '../../../shared/config/settings.ts';
import { functionNames, type FunctionName } from '../constructs/function-descriptions.ts';
import { BedrockModels } from './bedrock-models.ts';
import { frontDoors } from './front-door.ts';
import {
  email,
  flag,
  matchArn,
  matchCount,
  matchFields,
  matchText,
  regionPart,
  regionPattern,
} from './option-values.ts';
import { findRegionProblem } from './streaming-regions.ts';

/** Numbers of generated secrets, oldest first. */
function matchSecretNumbers(most: number) {
  const wanted = `a list of 1 to ${most} different whole numbers, the newest last, such as [1] or [1,2]`;
  return z.array(z.int(wanted).check(z.gte(1, wanted), z.lte(9999, wanted)), wanted).check(
    z.minLength(1, wanted),
    z.maxLength(most, wanted),
    z.refine((numbers) => new Set(numbers).size === numbers.length, wanted),
  );
}

interface Option<Schema extends z.ZodMiniType = z.ZodMiniType> {
  schema: Schema;
  what: string;
  /** Without a default, the feature is off. */
  default?: z.input<Schema>;
}

const declareOption = <Schema extends z.ZodMiniType>(
  schema: Schema,
  what: string,
  standard?: z.input<Schema>,
): Option<Schema> => ({ schema, what, ...(standard !== undefined && { default: standard }) });

const regionName = matchText(regionPattern, 'a region, such as eu-central-1').check(
  z.refine((region: string) => findRegionProblem(region) === undefined, {
    error: ({ input }) => `another region: ${findRegionProblem(String(input))}`,
  }),
);
const hostName = matchText(
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'a lower-case host name',
);

/** Stricter than mail addresses are, because it becomes part of a permission. */
const sender = matchText(
  /^[A-Za-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'an e-mail address that SES has verified, its domain in lower case',
);

const topicName = '[A-Za-z0-9_-]{1,256}';
const topicArn = matchArn({ service: 'sns', resource: topicName, wanted: 'the ARN of a standard SNS topic' });

const keyArn = matchArn({
  service: 'kms',
  resource: 'key/([0-9a-f-]{36}|mrk-[0-9a-f]{32})',
  wanted: 'the ARN of a KMS key',
});

const kinesisArn = matchArn({
  service: 'kinesis',
  resource: 'stream/[A-Za-z0-9_.-]{1,128}',
  wanted: 'the ARN of a Kinesis data stream',
});

const megabytes = z.optional(matchCount(128, 10_240));
const memory = Object.fromEntries(functionNames.map((name) => [name, megabytes])) as Record<
  FunctionName,
  typeof megabytes
>;

/** The steps that CloudWatch supports. */
const retentionDays = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

/** Below this objective, the error budget of an hour exceeds all calls, so the alarm could never trigger. */
const leastPercent = 94;
const wantedPercent = `a number from ${leastPercent} to below 100`;
const percent = z.number(wantedPercent).check(z.gte(leastPercent, wantedPercent), z.lt(100, wantedPercent));

const imagePattern = /^[a-z0-9.-]+(:\d+)?\/[a-z0-9._/-]+(:[\w.-]{1,128}|@sha256:[0-9a-f]{64})$/;
const zoneId = '[a-z]{3,5}\\d-az\\d{1,2}';
const wantedZones = 'two or more availability zones, such as ["us-east-1a", "us-east-1b"]';
const wantedZoneIds = 'the ids of two availability zones, such as ["use1-az1", "use1-az2"]';
const listZones = (pattern: string, wanted: string) =>
  z.array(matchText(new RegExp(`^${pattern}$`), wanted), wanted).check(
    z.minLength(2, wanted),
    z.refine((zones) => new Set(zones).size === zones.length, wanted),
  );
const wantedSubnets = 'a subnet of each of the zones, in their order';
const wantedShare = 'a number from 0 to 1';
const webAclWanted =
  'true, or the ARN of a WAF ACL: of CloudFront (arn:aws:wafv2:us-east-1:...:global/webacl/...), or of the region before an API';
const webAclName = 'webacl/[A-Za-z0-9_-]{1,128}/[0-9a-f-]{36}';
const accessLogWanted = 'true, or the name of a bucket with ACLs';
const refundsWanted = 'yuan from 0 to 1000000 with at most 9 decimals';
const shiftingWanted = 'true, false or "linear"';
const edgeTopicWanted = 'true, or the ARN of an SNS topic in us-east-1';

/** @param what the resource that the ARN names */
const matchSecretReference = (what: string, purpose: 'canary' | 'console') =>
  matchText(
    /^(ssm:\/relay\/[\w.-]+(\/[\w.-]+)+|secretsmanager:[\w+=.@-]+(\/[\w+=.@-]+)+)$/,
    `${what}: ssm:/relay/<stack>/${purpose}/<name> or secretsmanager:<stack>/${purpose}/<name>`,
  );

const wantedPeople = 'a list of groups and e-mail addresses';
const people = z.array(matchText(/^[^\s,]{1,200}( [^\s,]{1,200}){0,9}$/, wantedPeople), wantedPeople);

const isAscending = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => number > (numbers[index - 1] ?? 0));

const idsOf = (kind: string, most: number) => {
  const wanted = `a list of 1 to ${most} ids, such as ["${kind}-0123456789abcdef0"]`;
  return z
    .array(matchText(new RegExp(`^${kind}-[0-9a-f]{8,17}$`), wanted), wanted)
    .check(z.minLength(1, wanted), z.maxLength(most, wanted));
};

export const optionTable = {
  region: declareOption(regionName, 'region of the stage; overrides the environment'),
  frontDoor: declareOption(
    z.literal(frontDoors, `one of ${frontDoors.join(', ')}`),
    'address for clients: CloudFront, CloudFront with API Gateway, or API Gateway for everyone or for your VPCs',
    'cloudfront',
  ),
  vpcEndpointIds: declareOption(
    idsOf('vpce', 10),
    'VPC endpoints of execute-api that may call a private API',
  ),
  vpc: declareOption(
    matchFields({ subnetIds: idsOf('subnet', 16), securityGroupIds: idsOf('sg', 5) }),
    'subnets and security groups for all functions; needs API Gateway as front door',
  ),
  disposable: declareOption(
    flag,
    'for trials: nothing is protected, and tables, logs and failed stream records are deleted with the stack',
    false,
  ),
  domain: declareOption(hostName, 'your host name; needs certificateArn'),
  certificateArn: declareOption(
    matchArn({
      service: 'acm',
      resource: 'certificate/[0-9a-f-]+',
      wanted: 'the ARN of an ACM certificate',
    }),
    'certificate of the domain: in us-east-1 for CloudFront, in the region of the stage for an API',
  ),
  hostedZone: declareOption(
    matchFields({
      id: matchText(/^Z[A-Z0-9]{1,31}$/, 'the id of a Route 53 zone, such as Z0123456789ABCDEFGHIJ'),
      name: hostName,
    }),
    'Route 53 zone for the records of the domain; without it you create them',
  ),
  alarms: declareOption(
    flag,
    'false: no alarms; alarmEmail and alarmTopicArn then get only notices about accounts',
    true,
  ),
  alarmEmail: declareOption(email, 'receives alarms and alerts; SNS asks this address to confirm'),
  pageEmail: declareOption(email, 'receives urgent alarms, instead of alarmEmail'),
  objectives: declareOption(
    matchFields({
      availabilityPercent: z.optional(percent),
      firstContentPercent: z.optional(percent),
      firstContentSeconds: z.optional(matchCount(1, 600)),
    }),
    'objectives that the alarms watch (99.5, 95 and 10)',
  ),
  canary: declareOption(
    matchFields({
      model: matchText(/^[A-Za-z0-9._:/@-]{1,128}$/, 'the public name of a model'),
      key: matchSecretReference('the reference of a key', 'canary'),
      everyMinutes: z.optional(matchCount(2, 10)),
    }),
    'a scheduled call through the public address, with its own key',
  ),
  console: declareOption(
    matchFields({
      oidc: matchFields({
        issuer: matchText(
          /^https:\/\/(?!login\.microsoftonline\.com\/(common|organizations|consumers)\b)[a-z0-9.-]+(:\d{1,5})?(\/[\w./~-]*)?$/,
          'the https address of an issuer of one organisation, without query or fragment',
        ),
        clientId: matchText(/^[\x21-\x7e]{1,256}$/, 'the id of a client at the issuer'),
        clientSecret: matchSecretReference('the reference of the client’s secret', 'console'),
        scopes: z.optional(
          z
            .array(matchText(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, 'a scope'), 'a list of scopes with openid')
            .check(z.refine((list) => list.includes('openid'), 'a list of scopes with openid')),
        ),
        groupsClaim: z.optional(
          matchText(/^[\x21-\x7e]{1,200}$/, 'the name of a claim, such as cognito:groups'),
        ),
      }),
      roles: matchFields({
        viewer: z.optional(people),
        support: z.optional(people),
        operator: z.optional(people),
      }),
      supportRefundYuanADay: z.optional(
        z.number(refundsWanted).check(
          z.gte(0, refundsWanted),
          z.lte(1_000_000, refundsWanted),
          z.refine((yuan) => parseYuan(yuan) !== undefined, refundsWanted),
        ),
      ),
    }),
    'console at /console/ for people who log in through OpenID Connect, by role',
  ),
  shifting: declareOption(
    z.union([flag, z.literal('linear')], shiftingWanted),
    'true: new versions get a tenth of the calls for five minutes, then all; "linear": a tenth more each minute; false: all at once',
    true,
  ),
  alarmTopicArn: declareOption(
    topicArn,
    'an existing standard topic of the region instead of a new one; its policy must let cloudwatch.amazonaws.com publish; alarmEmail subscribes to it',
  ),
  edgeAlarms: declareOption(
    z.union(
      [flag, matchArn({ service: 'sns', resource: topicName, wanted: edgeTopicWanted, region: 'us-east-1' })],
      edgeTopicWanted,
    ),
    'alarm on 5xx answers of CloudFront: true reports to alarmEmail, or give a topic in us-east-1',
    false,
  ),
  budget: declareOption(
    matchFields({
      monthlyUsd: matchCount(1, 10_000_000),
      email: z.optional(email),
      topicArn: z.optional(topicArn),
    }),
    'sends mail if the whole AWS account costs more',
  ),
  alertSender: declareOption(sender, 'sender address of mail to the contacts of accounts, verified in SES'),
  originSecrets: declareOption(
    matchSecretNumbers(3),
    'numbers of the secrets between CloudFront and the functions',
    [1],
  ),
  sealKeys: declareOption(
    matchSecretNumbers(10).check(z.refine(isAscending, 'ascending numbers, such as [1,2]')),
    'numbers of the keys that encrypt the state of turns',
    [1],
  ),
  bedrockModels: declareOption(BedrockModels, 'Bedrock models that the relay may call with its own role', []),
  unboundSecrets: declareOption(
    flag,
    'true: functions also read secrets whose paths name no purpose; false in new stacks, and after `relay-ops secret move`',
    true,
  ),
  reservedConcurrency: declareOption(
    matchCount(1, 100_000),
    'guaranteed and maximum number of concurrent calls for each of chat, responses and messages; account_concurrency is half of it by default',
  ),
  compute: declareOption(
    z.literal(['functions', 'ecs'], 'functions or ecs'),
    'where endpoints run: functions, or a server on ECS Fargate',
    'functions',
  ),
  service: declareOption(
    matchFields({
      image: z.optional(
        matchText(
          imagePattern,
          'an image with its tag or digest, such as 123456789012.dkr.ecr.us-east-1.amazonaws.com/relay:1',
        ),
      ),
      vpc: z.optional(
        matchFields({
          id: matchText(
            /^vpc-[0-9a-f]{8,17}$/,
            'the id of a VPC with an internet gateway, such as vpc-0123456789abcdef0',
          ),
          zones: listZones(`(${regionPart}[a-z]|${zoneId})`, wantedZones),
          subnets: z
            .array(matchText(/^subnet-[0-9a-f]{8,17}$/, wantedSubnets), wantedSubnets)
            .check(z.minLength(2, wantedSubnets)),
          public: z.optional(flag),
        }),
      ),
      zones: z.optional(listZones(zoneId, wantedZoneIds).check(z.maxLength(2, wantedZoneIds))),
      tasksMin: z.optional(matchCount(1, 1000)),
      tasksMax: z.optional(matchCount(1, 5000)),
    }),
    'for compute ecs: an existing image, an existing VPC or the zones of a new one, and the number of tasks (2 to 10)',
  ),
  moneyConcurrency: declareOption(
    matchCount(5, 1000),
    'guaranteed and maximum number of concurrent calls for each of ledger, grants, sweeper and config',
  ),
  backgroundMinutes: declareOption(
    matchCount(15, runMinutesMax),
    'minutes after which Lambda ends a background run; more than 15 only where Lambda allows it',
    15,
  ),
  memory: declareOption(matchFields(memory), 'megabytes by function, such as {"chat": 512}', {}),
  awsClient: declareOption(
    z.literal('sdk', 'sdk'),
    'sdk: functions use AWS’s DynamoDB client instead of the relay’s',
  ),
  limits: declareOption(LimitsValue, 'the setting limits while it has no row'),
  logRetentionDays: declareOption(
    z.literal(retentionDays, `one of ${retentionDays.join(', ')}`),
    'days that functions keep their log, one of CloudWatch’s steps (1, 3, 5, 7, 14, 30, 60, 90 ... 3653)',
    30,
  ),
  tracing: declareOption(
    matchFields({
      endpoint: matchText(
        /^https:\/\/[a-z0-9.-]+(:\d{1,5})?(\/[\w./~-]*)?$/i,
        'an https address without user, query or fragment',
      ),
      headersSecret: z.optional(matchText(/^[\w/+=.@-]{1,512}$/, 'the name of a secret in Secrets Manager')),
      share: z.optional(z.number(wantedShare).check(z.gte(0, wantedShare), z.lte(1, wantedShare))),
    }),
    'OTLP receiver of traces (https), the secret with its headers, the share of calls (0 to 1)',
  ),
  webAcl: declareOption(
    z.union(
      [
        flag,
        matchArn({
          service: 'wafv2',
          resource: `global/${webAclName}`,
          wanted: webAclWanted,
          region: 'us-east-1',
        }),
        matchArn({ service: 'wafv2', resource: `regional/${webAclName}`, wanted: webAclWanted }),
      ],
      webAclWanted,
    ),
    'true: a web ACL that limits each address; or the ARN of yours (regional for an API)',
    false,
  ),
  webAclRequestsPerMinute: declareOption(
    matchCount(10, 2_000_000),
    'requests per minute that the new ACL allows for each address',
    600,
  ),
  accessLog: declareOption(
    z.union(
      [flag, matchText(/^(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, accessLogWanted)],
      accessLogWanted,
    ),
    'CloudFront’s log of every request: true creates a bucket, or give the name of one',
    false,
  ),
  backupCopies: declareOption(
    matchFields({
      vaultArn: matchArn({
        service: 'backup',
        resource: 'backup-vault:[A-Za-z0-9_-]{2,50}',
        wanted: 'the ARN of a backup vault in another region',
      }),
      days: z.optional(matchCount(1, 3650)),
      hourly: z.optional(flag),
    }),
    'copies of the tables in a vault of another region, daily or hourly, kept for days (35)',
  ),
  ledgerStream: declareOption(
    kinesisArn,
    'your Kinesis data stream in the region of the stage, which receives every new ledger row',
  ),
  encryptionKeyArn: declareOption(
    keyArn,
    'your KMS key in the region of the stage, which encrypts the tables',
  ),
  encryptionKeyArns: declareOption(
    matchFields({
      logs: z.optional(keyArn),
      secrets: z.optional(keyArn),
      alarmTopic: z.optional(keyArn),
      buckets: z.optional(keyArn),
      variables: z.optional(keyArn),
    }),
    'your KMS keys in the region of the stage, for everything but tables',
  ),
};

export type OptionName = keyof typeof optionTable;

/** The options of a file, without defaults. */
export type StageOptions = { [Name in OptionName]?: z.input<(typeof optionTable)[Name]['schema']> };

export const optionNames = Object.keys(optionTable) as OptionName[];

export const findOption = (name: string): Option | undefined =>
  Object.hasOwn(optionTable, name) ? optionTable[name as OptionName] : undefined;
