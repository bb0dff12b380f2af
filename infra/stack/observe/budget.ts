/** A monthly budget of the whole AWS account, because costs by stack need tags that an account must activate first. */
import { Stack } from 'aws-cdk-lib';
import { CfnBudget } from 'aws-cdk-lib/aws-budgets';
import { Construct } from 'constructs';

export interface RelayBudget {
  /** US dollars a month for the whole account. */
  monthlyUsd: number;
  /** Receives a mail at 80 %, at 100 %, and when the forecast exceeds the budget. */
  email?: string | undefined;
  /** The ARN of a topic whose policy lets `budgets.amazonaws.com` publish. */
  topicArn?: string | undefined;
}

const thresholds = [
  { notificationType: 'ACTUAL', threshold: 80 },
  { notificationType: 'ACTUAL', threshold: 100 },
  { notificationType: 'FORECASTED', threshold: 100 },
];

export function createBudget(
  scope: Construct,
  { relayName, monthlyUsd, email, topicArn }: RelayBudget & { relayName: string },
): CfnBudget {
  const subscribers = [
    ...(email === undefined ? [] : [{ subscriptionType: 'EMAIL', address: email }]),
    ...(topicArn === undefined ? [] : [{ subscriptionType: 'SNS', address: topicArn }]),
  ];
  if (subscribers.length === 0) throw new Error('budget: nobody would be notified: set email or topicArn');
  return new CfnBudget(new Construct(scope, 'Budget'), 'Budget', {
    budget: {
      // An account has one list of budgets for all regions.
      budgetName: `${relayName}-${Stack.of(scope).region}`,
      budgetType: 'COST',
      timeUnit: 'MONTHLY',
      budgetLimit: { amount: monthlyUsd, unit: 'USD' },
    },
    notificationsWithSubscribers: thresholds.map((threshold) => ({
      notification: { ...threshold, comparisonOperator: 'GREATER_THAN', thresholdType: 'PERCENTAGE' },
      subscribers,
    })),
  });
}
