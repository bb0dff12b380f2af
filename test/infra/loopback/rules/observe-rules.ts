/** Rules of alarms, dashboards, topics, budgets and traffic shifting. */
import { textOf, type Resource } from '../template.ts';
import {
  documentation,
  listOf,
  ofType,
  recordOf,
  waitingFor,
  type RuleContext,
  type ServiceRule,
} from './rule.ts';

const cloudWatch = `${documentation}AmazonCloudWatch/latest/`;
/** Namespaces whose metrics are there only in us-east-1. */
const edgeNamespaces = new Set(['AWS/CloudFront', 'AWS/Billing', 'AWS/Route53']);
const daySeconds = 86_400;
const weekSeconds = 7 * daySeconds;
const widgetsMax = 500;

interface Metric {
  Namespace?: string;
  Dimensions?: { Name: string; Value: string }[];
  Period?: number;
}

/** The metrics of an alarm, its own and those of its expression. */
function metricsOf({ properties }: Resource): Metric[] {
  const inner = listOf(properties['Metrics']).map((query) => {
    const { Metric, Period } = recordOf(query['MetricStat']);
    return Object.assign({}, Metric as Metric | undefined, {
      Period: Number(Period ?? query['Period'] ?? 0),
    }) as Metric;
  });
  return [properties, ...inner];
}

function isEdgeMetric({ Namespace = '', Dimensions = [] }: Metric): boolean {
  const isGlobalFirewall =
    Namespace === 'AWS/WAFV2' && !Dimensions.some(({ Name }) => Name === 'Region') && Dimensions.length > 0;
  return edgeNamespaces.has(Namespace) || isGlobalFirewall;
}

const policyOf = (topic: string, context: RuleContext): string =>
  ofType(context, 'AWS::SNS::TopicPolicy')
    .filter(({ properties }) => listOf<string>(properties['Topics']).includes(topic))
    .map(({ properties }) => JSON.stringify(properties['PolicyDocument']))
    .join(' ');

export const observeRules: ServiceRule[] = [
  {
    id: 'metric-region',
    types: ['AWS::CloudWatch::Alarm'],
    kind: 'useless',
    source: `${documentation}AmazonCloudFront/latest/DeveloperGuide/monitoring-using-cloudwatch.html`,
    check(alarm, { region }) {
      const edge = metricsOf(alarm).find(isEdgeMetric);
      if (edge === undefined || region === 'us-east-1') return undefined;
      return `metrics of ${edge.Namespace} are in us-east-1 alone: in ${region} the alarm never has data`;
    },
  },
  {
    id: 'alarm-window',
    types: ['AWS::CloudWatch::Alarm'],
    kind: 'refused',
    source: `${cloudWatch}monitoring/AlarmThatSendsEmail.html`,
    check(alarm) {
      const periods = Number(alarm.properties['EvaluationPeriods'] ?? 1);
      const period = Math.max(...metricsOf(alarm).map(({ Period }) => Period ?? 0));
      const most = period >= 3_600 ? weekSeconds : daySeconds;
      if (periods * period <= most) return undefined;
      return `ValidationError: Metrics cannot be checked across more than a ${most === daySeconds ? 'day' : 'week'} (EvaluationPeriods * Period must be <= ${most}).`;
    },
  },
  {
    id: 'alarm-action-region',
    types: ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm'],
    kind: 'refused',
    source: `${cloudWatch}APIReference/API_PutMetricAlarm.html`,
    check({ properties }, { region }) {
      const actions = ['AlarmActions', 'OKActions', 'InsufficientDataActions'].flatMap((list) =>
        listOf<string>(properties[list]),
      );
      const wrong = actions.find((arn) => arn.startsWith('arn:aws:sns:') && arn.split(':')[3] !== region);
      if (wrong === undefined) return undefined;
      return `ValidationError: Invalid region ${wrong.split(':')[3]} specified. Only ${region} is supported.`;
    },
  },
  {
    id: 'composite-children',
    types: ['AWS::CloudWatch::CompositeAlarm'],
    kind: 'refused',
    source: `${cloudWatch}APIReference/API_PutCompositeAlarm.html`,
    check(composite, context) {
      const rule = String(composite.properties['AlarmRule']);
      const names = [...rule.matchAll(/(?:ALARM|OK|INSUFFICIENT_DATA)\(\s*"?([^")]+)"?\s*\)/g)].map(
        ([, name = '']) => name,
      );
      const alarms = [...context.resources.values()].filter(({ type }) =>
        type.startsWith('AWS::CloudWatch::'),
      );
      const missing = names.find(
        (name) =>
          !alarms.some(
            (alarm) =>
              [alarm.physicalId, alarm.arn].includes(name) && waitingFor(context, composite, alarm.id),
          ),
      );
      if (missing === undefined) return undefined;
      return `ValidationError: ${missing} is not an existing alarm when the rule is made`;
    },
  },
  {
    id: 'dashboard-body',
    types: ['AWS::CloudWatch::Dashboard'],
    kind: 'refused',
    source: `${cloudWatch}APIReference/API_PutDashboard.html`,
    check({ properties }) {
      let widgets: unknown;
      try {
        widgets = recordOf(JSON.parse(String(properties['DashboardBody'])))['widgets'];
      } catch {
        return 'InvalidParameterInput: The field DashboardBody must be a valid JSON object';
      }
      if (listOf(widgets).length <= widgetsMax) return undefined;
      return `InvalidParameterInput: ${listOf(widgets).length} widgets, at most ${widgetsMax}`;
    },
  },
  {
    id: 'budget-topic',
    types: ['AWS::Budgets::Budget'],
    kind: 'useless',
    source: `${documentation}cost-management/latest/userguide/budgets-sns-policy.html`,
    check({ properties }, context) {
      const topics = listOf(properties['NotificationsWithSubscribers'])
        .flatMap(({ Subscribers }) => listOf<{ SubscriptionType: string; Address: string }>(Subscribers))
        .filter(({ SubscriptionType }) => SubscriptionType === 'SNS')
        .map(({ Address }) => Address);
      const own = new Set(ofType(context, 'AWS::SNS::Topic').map(({ physicalId }) => physicalId));
      const mute = topics.find(
        (topic) => own.has(topic) && !policyOf(topic, context).includes('budgets.amazonaws.com'),
      );
      if (mute === undefined) return undefined;
      return `AWS Budgets may not publish to ${mute}: its policy does not name budgets.amazonaws.com`;
    },
  },
  {
    id: 'shift-group',
    types: ['AWS::Lambda::Alias'],
    kind: 'refused',
    source: `${documentation}AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html`,
    check(alias, context) {
      const update = recordOf(alias.updatePolicy['CodeDeployLambdaAliasUpdate']);
      if (Object.keys(update).length === 0) return undefined;
      const group = ofType(context, 'AWS::CodeDeploy::DeploymentGroup').find(
        ({ physicalId, properties }) =>
          physicalId === update['DeploymentGroupName'] &&
          properties['ApplicationName'] === update['ApplicationName'],
      );
      const application = ofType(context, 'AWS::CodeDeploy::Application').find(
        ({ physicalId }) => physicalId === update['ApplicationName'],
      );
      const isOfLambda = application?.properties['ComputePlatform'] === 'Lambda';
      const config = textOf(group?.properties['DeploymentConfigName'] ?? '');
      const isLambdaConfig = !config.startsWith('CodeDeployDefault.') || config.includes('.Lambda');
      if (group && isOfLambda && isLambdaConfig && waitingFor(context, alias, group.id)) return undefined;
      return `CodeDeploy: no deployment group ${String(update['DeploymentGroupName'])} of a Lambda application with a Lambda configuration (${config || 'none'}) stands before the alias`;
    },
  },
  {
    id: 'shift-alarms',
    types: ['AWS::CodeDeploy::DeploymentGroup'],
    kind: 'refused',
    source: `${documentation}codedeploy/latest/userguide/limits.html`,
    check({ properties }, context) {
      const alarms = listOf<{ Name: string }>(recordOf(properties['AlarmConfiguration'])['Alarms']);
      if (alarms.length > 10) return `AlarmsLimitExceededException: ${alarms.length} alarms, at most 10`;
      const known = new Set([...context.resources.values()].map(({ physicalId }) => physicalId));
      const missing = alarms.find(({ Name }) => !known.has(Name));
      return missing && `InvalidAlarmConfigException: ${missing.Name} is not an alarm of the stack`;
    },
  },
];
