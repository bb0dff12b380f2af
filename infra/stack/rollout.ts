/** Shifts calls to new code step by step, and tries it with a scheduled call. */
import { join } from 'node:path';
import { Construct } from 'constructs';
import { LambdaApplication, LambdaDeploymentConfig, LambdaDeploymentGroup } from 'aws-cdk-lib/aws-codedeploy';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  type RelayFunctions,
  type RelayCodeProps,
  type RelayVpc,
  allow,
  RelayFunction,
} from './constructs/relay-functions.ts';
import { functionDescriptions } from './constructs/function-descriptions.ts';
import type { Alarms } from './observe/alarms.ts';
import { countCallsByVersion } from './observe/relay-metric.ts';

/** A function, and the role that deploys it. */
export interface ShiftRole {
  role: Role;
  lambda: IFunction;
}

export interface ShiftProps {
  functions: RelayFunctions;
  alarms: Alarms;
  /**
   * True shifts a tenth more each minute. False shifts a tenth for five minutes, the window of the alarms, then the rest; functions
   * without callers always shift linearly, because a tenth of a schedule's runs in five minutes is less than one.
   */
  linear: boolean;
}

/**
 * Shifts calls and runs to the new versions in steps, and back when an alarm triggers. Must never react to single errors: one process
 * that runs out of memory does not make a version bad. The exception is MoneyWrong: a single wrong balance rolls back.
 */
export function shiftTraffic(scope: Construct, { functions, alarms, linear }: ShiftProps): ShiftRole[] {
  // Only the alarms of versions use these counts.
  countCallsByVersion(functions);
  const shift = new Construct(scope, 'Shift');
  const application = new LambdaApplication(shift, 'Application');
  return [...functions.byName].flatMap(([name, { live }]) => {
    if (live === undefined) return [];
    const { lambda } = live.version;
    const { keepsBooks = false } = functionDescriptions[name];
    // One role per function: functions deploy in order, so a shared role would create a circle of dependencies.
    const role = new Role(shift, `${name}Role`, {
      assumedBy: new ServicePrincipal('codedeploy.amazonaws.com'),
    });
    const actions = ['GetAlias', 'UpdateAlias', 'GetProvisionedConcurrencyConfig'];
    role.addToPolicy(allow('lambda', actions, lambda.functionArn, `${lambda.functionArn}:*`));
    role.addToPolicy(allow('cloudwatch', ['DescribeAlarms'], '*'));
    const group = new LambdaDeploymentGroup(shift, name, {
      application,
      alias: live,
      // CDK's managed policy would let the role move the aliases of all functions in the account.
      role: role.withoutPolicyUpdates(),
      deploymentConfig:
        linear || keepsBooks
          ? LambdaDeploymentConfig.LINEAR_10PERCENT_EVERY_1MINUTE
          : LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: [alarms.ofNewVersion(name), ...(keepsBooks ? [alarms.named('MoneyWrong')] : [])],
      autoRollback: { failedDeployment: true, stoppedDeployment: true, deploymentInAlarm: true },
    });
    // A deployment fails if it starts before its role has the right to move the alias.
    group.node.addDependency(role);
    return { role, lambda };
  });
}

export interface CanaryOptions {
  /** Public name of a cheap model. */
  model: string;
  /** Reference of the key for the call: `ssm:/relay/<stack>/canary/<name>`. */
  key: string;
  /** Default: 5. */
  everyMinutes?: number;
}

interface CanaryProps extends CanaryOptions, RelayCodeProps {
  /** Includes `/v1`. */
  baseUrl: string;
  vpc: RelayVpc | undefined;
}

/** A function that calls the relay on a schedule through its public address, as a customer would. */
export function createScheduledCall(scope: Construct, props: CanaryProps): RelayFunction {
  const { relayName, version, baseUrl, bundlesFolder, model, key, everyMinutes = 5 } = props;
  const folder = new Construct(scope, 'Canary');
  const called = new RelayFunction(folder, 'canary', {
    ...props,
    description: {
      purpose: 'Calls the relay as a customer would, and counts the answers',
      timeoutSeconds: 60,
      tables: {},
      readsSecrets: ['canary'],
    },
    bundleFolder: join(bundlesFolder, 'canary'),
    environment: {
      RELAY_STACK: relayName,
      RELAY_VERSION: version,
      ORIGIN_SECRETS: '',
      CANARY_URL: baseUrl,
      CANARY_MODEL: model,
      CANARY_KEY: key,
    },
    memoryMegabytes: 128,
    logRetention: RetentionDays.ONE_MONTH,
    reservedConcurrency: undefined,
  });
  const rule = new Rule(folder, 'Schedule', {
    description: 'Runs function canary',
    schedule: Schedule.rate(Duration.minutes(everyMinutes)),
  });
  rule.addTarget(new LambdaFunction(called.lambda, { retryAttempts: 0 }));
  return called;
}
