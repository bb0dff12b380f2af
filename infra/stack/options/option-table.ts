/**
 * Every option of a deployment, one entry each: its value, its default, what it does. The reader of `relay.<stage>.json`,
 * the schema beside it, the published options and docs/options.md follow from this table.
 */
import * as z from 'zod/mini';
import { settingValues } from '../../../shared/config/settings/setting-row.ts';
import { functionNames, type FunctionName } from '../constructs/function-descriptions.ts';
import { BedrockModels } from './bedrock-models.ts';
import { arn, count, email, fields, flag, regionPattern, secretNumbers, text } from './option-kinds.ts';
import { regionProblem } from './streaming-regions.ts';

interface Option<Schema extends z.ZodMiniType = z.ZodMiniType> {
  schema: Schema;
  what: string;
  /** Absent: without the option there is nothing of it. */
  default?: z.input<Schema>;
}

const option = <Schema extends z.ZodMiniType>(
  schema: Schema,
  what: string,
  standard?: z.input<Schema>,
): Option<Schema> => ({ schema, what, ...(standard !== undefined && { default: standard }) });

const regionName = text(regionPattern, 'a region, such as eu-central-1').check(
  z.refine((region: string) => regionProblem(region) === undefined, {
    error: ({ input }) => `another region: ${regionProblem(String(input))}`,
  }),
);
const hostName = text(
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'a lower-case host name',
);

/** Narrower than an address may be, because it becomes part of a permission. */
const sender = text(
  /^[A-Za-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'an e-mail address that SES has verified, its domain in lower case',
);

const topicName = '[A-Za-z0-9_-]{1,256}';
const topicArn = arn({ service: 'sns', resource: topicName, wanted: 'the ARN of a standard SNS topic' });

const megabytes = z.optional(count(128, 10_240));
const memory = Object.fromEntries(functionNames.map((name) => [name, megabytes])) as Record<
  FunctionName,
  typeof megabytes
>;

/** The steps that CloudWatch has. */
const retentionDays = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

/** Below it the budget of an hour is larger than all that can fail, and a page would never come. */
const leastPercent = 94;
const wantedPercent = `a number from ${leastPercent} to below 100`;
const percent = z.number(wantedPercent).check(z.gte(leastPercent, wantedPercent), z.lt(100, wantedPercent));

const wantedShare = 'a number from 0 to 1';
const webAclWanted =
  'true, or the ARN of a WAF ACL for CloudFront (arn:aws:wafv2:us-east-1:...:global/webacl/...)';
const accessLogWanted = 'true, or the name of a bucket with ACLs';
const edgeTopicWanted = 'true, or the ARN of an SNS topic in us-east-1';

const ascending = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => number > (numbers[index - 1] ?? 0));

export const optionTable = {
  region: option(regionName, 'the region of the stage; others are then refused'),
  disposable: option(
    flag,
    'for trials: nothing is protected, and tables, logs and failed stream records are deleted with the stack',
    false,
  ),
  domain: option(hostName, 'your host name; needs certificateArn'),
  certificateArn: option(
    arn({
      service: 'acm',
      resource: 'certificate/[0-9a-f-]+',
      wanted: 'the ARN of an ACM certificate in us-east-1, the one region CloudFront reads certificates from',
      region: 'us-east-1',
    }),
    'the certificate of the domain, in us-east-1 whatever the region of the stack',
  ),
  hostedZone: option(
    fields({
      id: text(/^Z[A-Z0-9]{1,31}$/, 'the id of a Route 53 zone, such as Z0123456789ABCDEFGHIJ'),
      name: hostName,
    }),
    'the Route 53 zone that gets the records of the domain',
  ),
  alarms: option(
    flag,
    'alarms; without them alarmEmail and alarmTopicArn get notices about accounts alone',
    true,
  ),
  alarmEmail: option(email, 'receives alarms and alerts through a topic of the stack'),
  pageEmail: option(email, 'receives the alarms that must wake somebody, apart from the others'),
  objectives: option(
    fields({
      availabilityPercent: z.optional(percent),
      firstContentPercent: z.optional(percent),
      firstContentSeconds: z.optional(count(1, 600)),
    }),
    'what the alarms hold the relay to; 99.5, 95 and 10 unless given',
  ),
  canary: option(
    fields({
      model: text(/^[A-Za-z0-9._:/@-]{1,128}$/, 'the public name of a model'),
      key: text(
        /^(ssm:\/relay\/[\w.-]+(\/[\w.-]+)+|secretsmanager:[\w+=.@-]+(\/[\w+=.@-]+)+)$/,
        'the reference of a key: ssm:/relay/<stack>/<name> or secretsmanager:<stack>/<name>',
      ),
      everyMinutes: z.optional(count(2, 10)),
    }),
    'a scheduled call through the public address, with a key of its own',
  ),
  shifting: option(
    flag,
    'a deployment shifts calls to new versions step by step, and back when they fail',
    true,
  ),
  oneItemPerAccount: option(
    flag,
    'busy accounts are not split: for the first deployment after version 0.1, and until it stays',
    false,
  ),
  alarmTopicArn: option(topicArn, 'an existing topic of the same region, in place of one of the stack'),
  edgeAlarms: option(
    z.union(
      [flag, arn({ service: 'sns', resource: topicName, wanted: edgeTopicWanted, region: 'us-east-1' })],
      edgeTopicWanted,
    ),
    'an alarm on the 5xx answers of CloudFront, in us-east-1; true reports to alarmEmail',
    false,
  ),
  budget: option(
    fields({ monthlyUsd: count(1, 10_000_000), email: z.optional(email), topicArn: z.optional(topicArn) }),
    'reports what the AWS account costs at 80 % and 100 % of the amount; to alarmEmail if it names nobody',
  ),
  alertSender: option(sender, 'mails the contacts of accounts from this address, which SES has verified'),
  originSecrets: option(secretNumbers(3), 'numbers of the secrets between CloudFront and functions', [1]),
  sealKeys: option(
    secretNumbers(10).check(z.refine(ascending, 'ascending numbers, such as [1,2]')),
    'numbers of the keys that seal the state of turns',
    [1],
  ),
  bedrockModels: option(BedrockModels, 'Bedrock models that the relay may call with its own role', []),
  reservedConcurrency: option(
    count(1, 100_000),
    'calls at once that AWS reserves for each of chat and responses, and their bound',
  ),
  memory: option(fields(memory), 'megabytes by function', {}),
  limits: option(settingValues.limits, 'what the setting limits says while it has no row'),
  logRetentionDays: option(
    z.literal(retentionDays, `one of ${retentionDays.join(', ')}`),
    'how long functions keep their log',
    30,
  ),
  tracing: option(
    fields({
      endpoint: text(
        /^https:\/\/[a-z0-9.-]+(:\d{1,5})?(\/[\w./~-]*)?$/i,
        'an https address without user, query or fragment',
      ),
      headersSecret: z.optional(text(/^[\w/+=.@-]{1,512}$/, 'the name of a secret in Secrets Manager')),
      share: z.optional(z.number(wantedShare).check(z.gte(0, wantedShare), z.lte(1, wantedShare))),
    }),
    'the OTLP receiver of traces, the secret with headers for it, and the share of calls that is traced',
  ),
  webAcl: option(
    z.union(
      [
        flag,
        arn({
          service: 'wafv2',
          resource: 'global/webacl/[A-Za-z0-9_-]{1,128}/[0-9a-f-]{36}',
          wanted: webAclWanted,
          region: 'us-east-1',
        }),
      ],
      webAclWanted,
    ),
    'a web ACL in front of the distribution: true makes one that limits what one address may ask',
    false,
  ),
  webAclRequestsPerMinute: option(
    count(10, 2_000_000),
    'requests of one address in a minute that the ACL of webAcl true lets through',
    600,
  ),
  accessLog: option(
    z.union([flag, text(/^(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, accessLogWanted)], accessLogWanted),
    'a log of every request at the edge, with addresses of clients: true keeps it in a bucket of the stack',
    false,
  ),
  encryptionKeyArn: option(
    arn({ service: 'kms', resource: 'key/([0-9a-f-]{36}|mrk-[0-9a-f]{32})', wanted: 'the ARN of a KMS key' }),
    'a key of yours, in the region of the stage, that encrypts the tables',
  ),
  compute: option(
    z.literal(['event', 'web'], '"event", or "web"'),
    'what answers: functions, or one server as a Lambda Web Function, which is experimental',
    'event',
  ),
};

export type OptionName = keyof typeof optionTable;

/** The options of a file: as given, nothing filled in. */
export type StageOptions = { [Name in OptionName]?: z.input<(typeof optionTable)[Name]['schema']> };

export const optionNames = Object.keys(optionTable) as OptionName[];

/** Undefined: there is no option of this name. */
export const optionNamed = (name: string): Option | undefined =>
  Object.hasOwn(optionTable, name) ? optionTable[name as OptionName] : undefined;

/** Fields that a reader of other stacks may look for, and why there is none. */
export const refusedFields: ReadonlyMap<string, string> = new Map([
  [
    'vpc',
    'Function URLs do not stream from functions in a VPC, so the relay has none; upstreams inside one are reached through a public name',
  ],
  ['stage', "the file's name says it: relay.<stage>.json, deployed with npm run deploy -- --stage <stage>"],
]);
