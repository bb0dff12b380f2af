/** Rules about several options together. */
import { functionDescriptions, type FunctionName } from '../constructs/function-descriptions.ts';
import { regionOf } from './option-kinds.ts';
import type { OptionName, StageOptions } from './option-table.ts';
import { withoutEdgeLogs } from './streaming-regions.ts';

export interface FieldProblem {
  field: string;
  problem: string;
}

type Check = (options: StageOptions) => FieldProblem | undefined | false;

const needs =
  (field: OptionName, needed: OptionName): Check =>
  (options) =>
    options[field] !== undefined &&
    options[needed] === undefined && { field, problem: `needs ${needed} beside it` };

/** Things that the stack uses in its own region alone. */
const inOwnRegion =
  (field: 'alarmTopicArn' | 'encryptionKeyArn'): Check =>
  ({ region, ...options }) => {
    const found = options[field];
    return (
      found !== undefined &&
      region !== undefined &&
      regionOf(found) !== region && {
        field,
        problem: `is in ${regionOf(found)}, wanted one in ${region}, the region of the stage`,
      }
    );
  };

const edgeIsKnown =
  (field: 'webAcl' | 'edgeAlarms'): Check =>
  (options) =>
    options[field] === true || (field === 'edgeAlarms' && typeof options[field] === 'string')
      ? needs(field, 'region')(options)
      : undefined;

/** With a server, functions that answer requests stay deployed, and get none. */
const serverAnswers = 'the server of compute "web" answers in its place';

const memoryOfIdle: Check = ({ compute, memory = {} }) => {
  const idle = Object.keys(memory).find(
    (name) => functionDescriptions[name as FunctionName].url !== undefined,
  );
  return (
    compute === 'web' &&
    idle !== undefined && {
      field: `memory.${idle}`,
      problem: `${serverAnswers}, and each of its environments has 2 GB: drop it`,
    }
  );
};

const concurrencyOfIdle: Check = ({ compute, reservedConcurrency }) =>
  compute === 'web' &&
  reservedConcurrency !== undefined && {
    field: 'reservedConcurrency',
    problem: `is of the functions chat and responses; ${serverAnswers}: drop it`,
  };

/** Where the region is not known, `edgeIsKnown` has said so. */
const edgeAlarmsReachSomebody: Check = ({ edgeAlarms, region, alarmEmail, alarmTopicArn }) =>
  edgeAlarms === true &&
  region !== undefined &&
  alarmEmail === undefined &&
  (region !== 'us-east-1' || alarmTopicArn === undefined) && {
    field: 'edgeAlarms',
    problem: 'nobody would hear of it: needs alarmEmail beside it, or the ARN of a topic in us-east-1',
  };

const logsGoElsewhere: Check = ({ accessLog, region }) =>
  accessLog === true &&
  region !== undefined &&
  withoutEdgeLogs.has(region) && {
    field: 'accessLog',
    problem: `CloudFront delivers no log to a bucket in ${region}: name one in another region`,
  };

const checks: readonly Check[] = [
  needs('domain', 'certificateArn'),
  needs('certificateArn', 'domain'),
  needs('hostedZone', 'domain'),
  ({ domain = '', hostedZone }) =>
    hostedZone !== undefined &&
    domain !== '' &&
    !`.${domain}`.endsWith(`.${hostedZone.name}`) && {
      field: 'hostedZone.name',
      problem: `the domain ${domain} is not in the zone ${hostedZone.name}`,
    },
  inOwnRegion('alarmTopicArn'),
  inOwnRegion('encryptionKeyArn'),
  edgeIsKnown('webAcl'),
  edgeIsKnown('edgeAlarms'),
  edgeAlarmsReachSomebody,
  logsGoElsewhere,
  memoryOfIdle,
  concurrencyOfIdle,
  ({ webAcl, webAclRequestsPerMinute }) =>
    webAclRequestsPerMinute !== undefined &&
    webAcl !== true && {
      field: 'webAclRequestsPerMinute',
      problem: 'is the rate of an ACL that the stack makes: needs webAcl true beside it',
    },
  ({ budget, alarmEmail }) =>
    budget !== undefined &&
    (budget.email ?? budget.topicArn ?? alarmEmail) === undefined && {
      field: 'budget',
      problem: 'nobody would hear of it: needs email or topicArn in it, or alarmEmail beside it',
    },
  ({ limits, reservedConcurrency }) =>
    reservedConcurrency !== undefined &&
    Number(limits?.account_concurrency) > reservedConcurrency && {
      field: 'limits.account_concurrency',
      problem: `more than reservedConcurrency, which is ${reservedConcurrency}, so it would limit nobody`,
    },
];

/** What is wrong between options. */
export const optionChecks = (options: StageOptions): FieldProblem[] =>
  checks.flatMap((check) => check(options) || []);
