/** Rules about several options together. */
import { regionOf } from './option-kinds.ts';
import type { OptionName, StageOptions } from './option-table.ts';

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

export const optionChecks = (options: StageOptions): FieldProblem[] =>
  checks.flatMap((check) => check(options) || []);
