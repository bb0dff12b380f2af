/** Rules that involve several options. */
import * as z from 'zod/mini';
import { type OptionName, type StageOptions, findOption, optionNames } from './option-table.ts';
import { regionOf } from './option-values.ts';
import { findNearestName } from '../../../shared/wire/nearest-name.ts';
import { servedFunctions } from '../constructs/function-descriptions.ts';
import { type FrontDoor, hasDistribution } from './front-door.ts';
import { withoutEdgeLogs, zonesWithoutVpcOrigins } from './streaming-regions.ts';

export interface FieldProblem {
  field: string;
  problem: string;
}

/** The name of a field, and its problem. */
type Check = [field: string, problem: (options: StageOptions) => string | false | undefined];

/** Checks the condition only if the option is set and not false. */
const exclude = (field: OptionName, isWrong: (options: StageOptions) => boolean, why: string): Check => [
  field,
  (options) => Boolean(options[field]) && isWrong(options) && why,
];

const needs = (field: OptionName, needed: OptionName): Check =>
  exclude(field, (options) => options[needed] === undefined, `also needs ${needed}`);

/** Resources that must be in the region of the stack. */
const requireOwnRegion = (field: 'alarmTopicArn' | 'encryptionKeyArn' | 'ledgerStream'): Check => [
  field,
  ({ region, [field]: found }) =>
    found !== undefined &&
    region !== undefined &&
    regionOf(found) !== region &&
    `is in ${regionOf(found)}, expected one in ${region}, the region of the stage`,
];

const doorOf = ({ frontDoor = 'cloudfront' }: StageOptions): FrontDoor => frontDoor;

/** @param why the reason why the front door can't use the value */
const excludeWithDoor = (field: OptionName, why: string, isDoor: (door: FrontDoor) => boolean): Check => [
  field,
  (options) =>
    Boolean(options[field]) && isDoor(doorOf(options)) && `frontDoor is "${doorOf(options)}": ${why}`,
];
const isDirect = (door: FrontDoor): boolean => !hasDistribution(door);
const isPrivate = (door: FrontDoor): boolean => door === 'private-api';
const isOnServers = ({ compute }: StageOptions): boolean => compute === 'ecs';

/** A function's variables may have 4 KB together; the others need less than 1 KB. */
const consoleBytesMax = 3_000;

const checks: readonly Check[] = [
  excludeWithDoor(
    'vpc',
    'Function URLs do not stream from a VPC; use a front door of API Gateway',
    (door) => door === 'cloudfront',
  ),
  excludeWithDoor('vpcEndpointIds', 'only a private API uses them', (door) => !isPrivate(door)),
  [
    'vpcEndpointIds',
    (options) =>
      isPrivate(doorOf(options)) &&
      options.vpcEndpointIds === undefined &&
      'required: a private API can only be called through VPC endpoints',
  ],
  exclude(
    'frontDoor',
    (options) => isOnServers(options) && doorOf(options) !== 'cloudfront',
    'compute is "ecs": only CloudFront can reach the server',
  ),
  excludeWithDoor('console', 'the console needs CloudFront', isDirect),
  exclude('console', ({ vpc }) => vpc !== undefined, "its function streams, so it can't run in a VPC"),
  [
    'console.roles',
    ({ console: hosted }) =>
      hosted !== undefined &&
      Object.values(hosted.roles).flat().length === 0 &&
      'nobody could log in: name a group or a verified e-mail address',
  ],
  exclude(
    'console',
    ({ console: hosted }) => Buffer.byteLength(JSON.stringify(hosted)) > consoleBytesMax,
    `more than ${consoleBytesMax} bytes do not fit into its function: list groups instead of people`,
  ),
  excludeWithDoor('domain', 'a private API always has the host name of API Gateway', isPrivate),
  excludeWithDoor('edgeAlarms', 'there is no CloudFront to watch', isDirect),
  excludeWithDoor('accessLog', 'only CloudFront writes it', isDirect),
  excludeWithDoor(
    'originSecrets',
    'only API Gateway may call the functions, so there is no secret',
    isDirect,
  ),
  exclude(
    'canary',
    (options) => isPrivate(doorOf(options)) && options.vpc === undefined,
    'also needs vpc: a private API can only be called from a VPC',
  ),
  [
    'webAcl',
    (options) =>
      typeof options.webAcl === 'string' &&
      options.webAcl.includes(':global/') !== hasDistribution(doorOf(options)) &&
      `frontDoor is "${doorOf(options)}": expected an ACL of ${hasDistribution(doorOf(options)) ? 'CloudFront' : 'the region'}`,
  ],
  [
    'certificateArn',
    (options) => {
      const { certificateArn: found, region } = options;
      const wanted = hasDistribution(doorOf(options)) ? 'us-east-1' : region;
      if (found === undefined || wanted === undefined || regionOf(found) === wanted) return undefined;
      const reason =
        wanted === region ? 'the region of the API' : 'the one region CloudFront reads certificates from';
      return `is in ${regionOf(found)}, expected one in ${wanted}, ${reason}`;
    },
  ],
  needs('domain', 'certificateArn'),
  needs('certificateArn', 'domain'),
  needs('hostedZone', 'domain'),
  [
    'hostedZone.name',
    ({ domain = '', hostedZone }) =>
      hostedZone !== undefined &&
      domain !== '' &&
      !`.${domain}`.endsWith(`.${hostedZone.name}`) &&
      `the domain ${domain} is not in the zone ${hostedZone.name}`,
  ],
  requireOwnRegion('alarmTopicArn'),
  requireOwnRegion('ledgerStream'),
  requireOwnRegion('encryptionKeyArn'),
  [
    'backupCopies.vaultArn',
    ({ backupCopies, region }) =>
      backupCopies !== undefined &&
      regionOf(backupCopies.vaultArn) === region &&
      `is in ${region} itself, expected one in another region`,
  ],
  exclude(
    'backupCopies',
    ({ disposable }) => disposable === true,
    "a disposable stack can't delete a vault with copies: remove one of the two",
  ),
  [
    'encryptionKeyArns',
    ({ region, encryptionKeyArns = {} }) => {
      const other = Object.values(encryptionKeyArns).find((each) => regionOf(each) !== region);
      return (
        region !== undefined && other !== undefined && `${other} is not in ${region}, the region of the stage`
      );
    },
  ],
  exclude('webAcl', ({ webAcl, region }) => webAcl === true && region === undefined, 'also needs region'),
  needs('edgeAlarms', 'region'),
  exclude(
    'edgeAlarms',
    ({ edgeAlarms, region, alarmEmail, alarmTopicArn }) =>
      edgeAlarms === true &&
      region !== undefined &&
      alarmEmail === undefined &&
      (region !== 'us-east-1' || alarmTopicArn === undefined),
    'nobody would be notified: set alarmEmail, or give the ARN of a topic in us-east-1',
  ),
  [
    'accessLog',
    ({ accessLog, region = '' }) =>
      accessLog === true &&
      withoutEdgeLogs.has(region) &&
      `CloudFront can't deliver logs to a bucket in ${region}: use a bucket in another region`,
  ],
  exclude(
    'webAclRequestsPerMinute',
    ({ webAcl }) => webAcl !== true,
    'limits the ACL that the stack creates: also needs webAcl true',
  ),
  exclude(
    'budget',
    ({ budget, alarmEmail }) => (budget?.email ?? budget?.topicArn ?? alarmEmail) === undefined,
    'nobody would be notified: set its email or topicArn, or the option alarmEmail',
  ),
  exclude('service', (options) => !isOnServers(options), 'also needs compute ecs'),
  [
    'service.tasksMin',
    ({ service: { tasksMin = 2, tasksMax = Math.max(10, tasksMin) } = {} }) =>
      tasksMin > tasksMax && `more than tasksMax, which is ${tasksMax}`,
  ],
  [
    'service.vpc.subnets',
    ({ service: { vpc } = {} }) =>
      vpc?.zones.length !== vpc?.subnets.length && 'must have one subnet for each zone',
  ],
  [
    'service.zones',
    ({ service: { vpc, zones } = {} }) =>
      zones && vpc && 'are only for a new VPC, but service.vpc names an existing one',
  ],
  [
    'service',
    ({ service: { zones, vpc } = {} }) => {
      const excluded = Object.values(zonesWithoutVpcOrigins);
      const found = (vpc?.zones ?? zones)?.find((zone) => excluded.includes(zone));
      return found && `CloudFront's VPC origins can't reach a load balancer in ${found}: use another zone`;
    },
  ],
  [
    'service.zones',
    ({ service: { zones } = {}, region = '' }) => {
      // Zone ids start with an abbreviation of the region: `apse2-az1` in ap-southeast-2.
      const prefix = region.replaceAll(/(?<=[nsewc])(?:orth|outh|ast|est|entral)|-/g, '');
      const found = zones?.find((zone) => prefix !== '' && !zone.startsWith(`${prefix}-`));
      return found && `${found} is not in ${region}, whose zone ids start with ${prefix}-`;
    },
  ],
  ...(['reservedConcurrency', 'shifting'] as const).map((field): Check => [
    field,
    (options) =>
      isOnServers(options) &&
      options[field] !== undefined &&
      'is only for functions that answer calls, and compute ecs has none',
  ]),
  exclude(
    'memory',
    ({ memory, ...options }) => isOnServers(options) && servedFunctions.some((name) => memory?.[name]),
    `${servedFunctions.join(', ')} do not exist with compute ecs`,
  ),
  [
    'limits.account_concurrency',
    ({ limits, reservedConcurrency: most }) =>
      most !== undefined &&
      Number(limits?.account_concurrency) > most &&
      `more than reservedConcurrency, which is ${most}, so it would have no effect`,
  ],
];

/** Checks that involve several options. */
export const checkOptions = (options: StageOptions): FieldProblem[] =>
  checks.flatMap(([field, problemOf]) => {
    const problem = problemOf(options);
    return problem ? [{ field, problem }] : [];
  });

// Messages about the value of a field: field, found value, expected value.

const shownCharactersMax = 100;

export function findFieldProblems(name: string, value: unknown): FieldProblem[] {
  const option = findOption(name);
  if (option === undefined) {
    const where = '; docs/options.md lists them';
    return [{ field: name, problem: describeUnknownName(name, optionNames, 'an option', where) }];
  }
  const parsed = z.safeParse(option.schema, value);
  return parsed.success ? [] : parsed.error.issues.flatMap((issue) => issueProblems(issue, name, value));
}

function issueProblems(issue: z.core.$ZodIssue, name: string, value: unknown): FieldProblem[] {
  const field = [name, ...issue.path].map((step) =>
    typeof step === 'number' ? `[${step}]` : `.${String(step)}`,
  );
  const written = field.join('').slice(1);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      field: `${written}.${key}`,
      problem: describeUnknownName(key, fieldsOf(name), `a field of ${name}`),
    }));
  let found: unknown = value;
  for (const step of issue.path) found = (found as Record<PropertyKey, unknown>)[step];
  return [{ field: written, problem: `found ${quoteValue(found)}, expected ${issue.message}` }];
}

/** @param kind the kind of the names, such as `an option` */
export function describeUnknownName(
  name: string,
  names: readonly string[],
  kind: string,
  where = '',
): string {
  const nearest = findNearestName(name, names);
  return `not ${kind}${nearest === undefined ? where : `; did you mean ${nearest}?`}`;
}

/** Lists the fields of an option whose value is a map. */
export function fieldsOf(name: string): string[] {
  const { schema } = findOption(name) ?? {};
  return schema instanceof z.ZodMiniObject ? Object.keys(schema._zod.def.shape) : [];
}

function quoteValue(found: unknown): string {
  const written = JSON.stringify(found) ?? 'nothing';
  return written.length > shownCharactersMax ? `${written.slice(0, shownCharactersMax)}…` : written;
}
