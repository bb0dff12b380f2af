/** How new code gets its calls: shifted step by step, and tried by a scheduled call. */
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
import type { Alarms } from './observe/alarms.ts';
import { countCallsByVersion } from './observe/relay-metric.ts';

/** The role of one function's deployments, and the function. */
export interface ShiftRole {
  role: Role;
  lambda: IFunction;
}

export interface ShiftProps {
  functions: RelayFunctions;
  alarms: Alarms;
  /** A tenth more each minute. False: a tenth for five minutes, the window of the alarms, then all. */
  linear: boolean;
}

/**
 * Shifts the calls of a deployment to the new versions in steps, and back when the alarm of one triggers. Must never look at
 * single errors: one process that runs out of memory is no reason to give up a healthy version.
 */
export function shiftTraffic(scope: Construct, { functions, alarms, linear }: ShiftProps): ShiftRole[] {
  // The alarms of versions alone look at these counts.
  countCallsByVersion(functions);
  const shift = new Construct(scope, 'Shift');
  const application = new LambdaApplication(shift, 'Application');
  return [...functions.byName].flatMap(([name, { live }]) => {
    if (live === undefined) return [];
    const { lambda } = live.version;
    // One for each function: they wait for each other, and a common role would wait for all and be waited for by all.
    const role = new Role(shift, `${name}Role`, {
      assumedBy: new ServicePrincipal('codedeploy.amazonaws.com'),
    });
    const actions = ['GetAlias', 'UpdateAlias', 'GetProvisionedConcurrencyConfig'];
    role.addToPolicy(allow('lambda', actions, lambda.functionArn, `${lambda.functionArn}:*`));
    role.addToPolicy(allow('cloudwatch', ['DescribeAlarms'], '*'));
    const group = new LambdaDeploymentGroup(shift, name, {
      application,
      alias: live,
      // CDK would add a managed policy that lets the role move the aliases of all functions of the account.
      role: role.withoutPolicyUpdates(),
      deploymentConfig: linear
        ? LambdaDeploymentConfig.LINEAR_10PERCENT_EVERY_1MINUTE
        : LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
      alarms: [alarms.ofNewVersion(name)],
      autoRollback: { failedDeployment: true, stoppedDeployment: true, deploymentInAlarm: true },
    });
    // A deployment that starts before its role may move the alias fails.
    group.node.addDependency(role);
    return { role, lambda };
  });
}

export interface CanaryOptions {
  /** Public name of a cheap model. */
  model: string;
  /** Reference of the key that it calls with: `ssm:/relay/<stack>/canary/<name>`. */
  key: string;
  /** Default: 5. */
  everyMinutes?: number;
}

interface CanaryProps extends CanaryOptions, RelayCodeProps {
  /** With `/v1`. */
  baseUrl: string;
  vpc: RelayVpc | undefined;
}

/** The scheduled call: a function of its own that calls the relay through its public address, as a customer would. */
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
