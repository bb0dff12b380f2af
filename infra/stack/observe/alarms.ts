/**
 * The stack's alarms and the topic that mails them. Without a mail address the alarms still exist, for the
 * console and other tools.
 */
import { Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';
import type { AlarmDefinition, Severity } from './alarm-definition.ts';
import { functionAlarms } from './function-alarms.ts';
import { objectiveAlarms, type Objectives } from './objective-alarms.ts';
import { relayAlarms } from './request-alarms.ts';
import { versionAlarms } from './version-alarms.ts';

export interface AlarmsProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  objectives: Objectives;
  /** New versions are watched while they get traffic step by step. */
  shifting: boolean;
  email?: string;
  /** Receives pages alone. Absent: `email` receives them too. */
  pageEmail?: string;
}

export class Alarms extends Construct {
  /** Receives all alarms, or tickets alone where pages have a topic of their own. */
  readonly topic?: Topic;
  readonly all: Alarm[] = [];
  readonly #pageTopic?: Topic;
  readonly #byId = new Map<string, Alarm>();

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const { relayName, functions, triggers, objectives } = props;
    if (props.email !== undefined) this.topic = this.alarmTopic('Topic', props.email);
    if (props.pageEmail !== undefined) this.#pageTopic = this.alarmTopic('PageTopic', props.pageEmail);
    const definitions = [
      ...objectiveAlarms({ relayName, functions, objectives }),
      ...relayAlarms(relayName, triggers.mappings),
      ...functionAlarms(functions, triggers.mappings),
      ...(props.shifting ? versionAlarms(relayName, functions) : []),
    ];
    for (const definition of definitions) this.add(definition);
  }

  get(id: string): Alarm {
    const found = this.#byId.get(id);
    if (found === undefined) throw new Error(`no alarm ${id}`);
    return found;
  }

  add(definition: AlarmDefinition): void {
    const alarm = new Alarm(this, definition.id, {
      alarmDescription: `[${definition.severity}] ${definition.description}`,
      metric: definition.metric,
      threshold: definition.threshold,
      comparisonOperator:
        definition.triggers === 'below'
          ? ComparisonOperator.LESS_THAN_THRESHOLD
          : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: definition.periods ?? 1,
      treatMissingData: missingData(definition),
    });
    const topic = this.topicOf(definition.severity);
    if (topic) alarm.addAlarmAction(new SnsAction(topic));
    this.#byId.set(definition.id, alarm);
    this.all.push(alarm);
  }

  private topicOf(severity: Severity): Topic | undefined {
    return (severity === 'page' ? this.#pageTopic : undefined) ?? this.topic;
  }

  private alarmTopic(id: string, email: string): Topic {
    const topic = new Topic(this, id, { enforceSSL: true });
    topic.addSubscription(new EmailSubscription(email));
    // A topic policy replaces SNS's default policy, under which the account's alarms may publish.
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    );
    return topic;
  }
}

function missingData({ triggers, staysUntilMeasured }: AlarmDefinition): TreatMissingData {
  if (triggers === 'below') return TreatMissingData.BREACHING;
  return staysUntilMeasured ? TreatMissingData.IGNORE : TreatMissingData.NOT_BREACHING;
}
