/** The CloudWatch dashboard: requests, revenue, reservations, functions, tables and alarm states. */
import { Duration, Stack } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard as CloudWatchDashboard,
  type IWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import type { Alarms } from './alarms.ts';
import {
  channelWidgets,
  earningWidgets,
  minuteMetrics,
  outcomeWidgets,
  reservationWidgets,
  totalWidgets,
} from './dashboard-relay.ts';
import { hostWidgets } from './dashboard-host.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';

/** Lines of requests are in their logs. */
const answering = ['chat', 'responses'] as const satisfies FunctionName[];

export interface DashboardProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  alarms: Alarms;
}

export class Dashboard extends Construct {
  readonly page: CloudWatchDashboard;

  constructor(scope: Construct, id: string, { relayName, functions, triggers, alarms }: DashboardProps) {
    super(scope, id);
    const streamReaders = [...new Set(triggers.mappings.map((mapping) => mapping.function))];
    const states = new AlarmStatusWidget({ title: 'Alarms', alarms: alarms.all, width: 24, height: 4 });
    const metric = minuteMetrics(relayName);
    const rows: IWidget[][] = [
      totalWidgets(metric),
      outcomeWidgets(metric, relayName),
      channelWidgets(relayName),
      earningWidgets(
        metric,
        answering.map((name) => functions.get(name).lambda.logGroup.logGroupName),
      ),
      reservationWidgets(metric),
      ...hostWidgets(relayName, functions, streamReaders),
      ...(alarms.all.length > 0 ? [[states]] : []),
    ];
    this.page = new CloudWatchDashboard(this, 'Dashboard', {
      // Dashboards of all regions of an account are in one list.
      dashboardName: `${relayName}-${Stack.of(this).region}`,
      defaultInterval: Duration.hours(3),
      widgets: rows,
    });
  }
}
