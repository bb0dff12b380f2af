/** Saved queries for CloudWatch Logs Insights. The console lists them under `<stack>/`. */
import { CfnQueryDefinition } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import {
  answeringFunctions,
  functionNames,
  type FunctionName,
  type LogsOf,
} from '../constructs/function-descriptions.ts';

interface SavedQuery {
  name: string;
  /** Name -> description of each value that the console asks for; `{{name}}` in the query text. */
  parameters?: Record<string, string>;
  /** The functions whose logs the query reads. By default those that call models. */
  of?: readonly FunctionName[];
  lines: readonly string[];
}

const fields =
  'fields @timestamp, request_id, account, key_hint, model, channel, outcome, status, code, reason, ' +
  'FirstContentMs, duration_ms, prompt_tokens, completion_tokens, ChargeYuan';
const newestFirst = 'sort @timestamp desc';
const isRequest = 'filter message = "request"';

/** docs/observability.md explains the fields; a test compares both. */
export const savedQueries: Record<string, SavedQuery> = {
  OneRequest: {
    name: 'One request, all lines',
    parameters: { request_id: 'The x-request-id that a customer quotes' },
    of: [...answeringFunctions, 'catalog', 'ledger', 'sweeper'],
    lines: [
      'fields @timestamp, message, @message',
      'filter request_id = "{{request_id}}" or last_id = "{{request_id}}"',
      'sort @timestamp asc',
    ],
  },
  OfAccount: {
    name: 'Requests of an account',
    parameters: { account: 'The account, as in table accounts' },
    lines: [fields, `${isRequest} and account = "{{account}}"`, newestFirst, 'limit 1000'],
  },
  OfModel: {
    name: 'Requests of a model',
    parameters: { model: 'The public name of the model' },
    lines: [fields, `${isRequest} and model = "{{model}}"`, newestFirst, 'limit 1000'],
  },
  ByAccount: {
    name: 'Usage by account',
    lines: [
      isRequest,
      'stats count(*) as requests, sum(Failures) as failures, sum(prompt_tokens) as prompt, ' +
        'sum(completion_tokens) as completion, sum(ChargeYuan) as yuan by account',
      'sort yuan desc',
    ],
  },
  ByModel: {
    name: 'Usage by model',
    lines: [
      `${isRequest} and ispresent(model)`,
      'stats count(*) as requests, sum(Failures) as failures, sum(EstimatedUsage) / count(*) as estimated, ' +
        'pct(FirstContentMs, 50) as p50, pct(FirstContentMs, 95) as p95, sum(ChargeYuan) as yuan by model',
      'sort requests desc',
    ],
  },
  SlowestFirstContent: {
    name: 'Slowest first content',
    lines: [fields, `${isRequest} and ispresent(FirstContentMs)`, 'sort FirstContentMs desc', 'limit 100'],
  },
  FailuresByChannel: {
    name: 'Failures by channel',
    lines: [
      `${isRequest} and outcome in ["failed", "limited"]`,
      'stats count(*) as requests by channel, outcome, code, reason',
      'sort requests desc',
    ],
  },
  FailedOver: {
    name: 'Attempts that failed before another channel answered',
    lines: [
      `${isRequest} and FailedAttempts > 0`,
      'stats count(*) as requests by attempts.0.channel, attempts.0.outcome, attempts.1.channel, attempts.1.outcome, outcome',
      'sort requests desc',
    ],
  },
  ImplausibleUsage: {
    name: 'Implausible usage by channel',
    lines: [
      `${isRequest} and ispresent(usage_implausible)`,
      'stats count(*) as answers, avg(reported_input) as said_input, avg(prompt_tokens) as charged_input, ' +
        'avg(reported_output) as said_output, avg(completion_tokens) as charged_output by channel, model, usage_flag',
      'sort answers desc',
    ],
  },
  Refusals: {
    name: 'Refusals by reason',
    lines: [
      `${isRequest} and outcome = "refused"`,
      'stats count(*) as requests by code, reason, account',
      'sort requests desc',
    ],
  },
  SettleLost: {
    name: 'Lost settles',
    lines: [
      'fields @timestamp, @message, request_id, account, charge_nano',
      'filter message = "settle_lost" or (message = "settle_late" and ispresent(unsure))',
      newestFirst,
    ],
  },
  NeedsAPerson: {
    name: 'Events that need a person',
    of: [...answeringFunctions, 'payments', 'config', 'ledger', 'grants', 'sweeper', 'alerts', 'notify'],
    lines: [
      'fields @timestamp, message, account, request_id, problem, why, @message',
      'filter message in ["settle_lost", "settle_late", "reserve_unknown", "conservation_broken", "ledger_poisoned", ' +
        '"grant_poisoned", "reservation_poisoned", "sweep_failed", "reservation_expired", "config_format_unknown", ' +
        '"turn_state_lost", "response_not_stored", "response_not_taken_back", "alert_poisoned", "alert_undelivered", "payment_parked", "charged_above_reserve", "mark_failed"]',
      newestFirst,
    ],
  },
  Faults: {
    name: 'Faults, with frames',
    of: functionNames.filter((name) => name !== 'background'),
    lines: [
      'fields @timestamp, request_id, error, code, cause.error, cause.code, @message',
      'filter message = "fault"',
      newestFirst,
    ],
  },
};

/** The construct's name is part of the logical ids. */
export function saveQueries(
  scope: Construct,
  { relayName, logsOf }: { relayName: string; logsOf: LogsOf },
): CfnQueryDefinition[] {
  const folder = new Construct(scope, 'SavedQueries');
  return Object.entries(savedQueries).map(
    ([key, { name, parameters = {}, of = answeringFunctions, lines }]) => {
      const asked = Object.entries(parameters).map(([parameter, description]) => ({
        name: parameter,
        description,
      }));
      return new CfnQueryDefinition(folder, key, {
        name: `${relayName}/${name}`,
        queryString: lines.join('\n| '),
        logGroupNames: logsOf(of).map(({ logGroupName }) => logGroupName),
        ...(asked.length > 0 && { parameters: asked }),
      });
    },
  );
}
