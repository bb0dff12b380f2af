/** How new code gets its calls: counted by version, shifted step by step, and tried by a scheduled call. Only composes. */
import { join } from 'node:path';
import type { IAlarm } from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import { LambdaApplication, LambdaDeploymentConfig, LambdaDeploymentGroup } from 'aws-cdk-lib/aws-codedeploy';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Alias, IFunction } from 'aws-cdk-lib/aws-lambda';
import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { FunctionName } from './constructs/function-descriptions.ts';
import { type RelayFunctions, allow, RelayFunction } from './constructs/relay-functions.ts';
import type { RelayTables } from './constructs/relay-tables.ts';
import { countCallsByVersion } from './observe/relay-metric.ts';

interface RolloutProps {
  relayName: string;
  version: string;
  tables: RelayTables;
  disposable: boolean;
  functions: RelayFunctions;
  /** With `/v1`. */
  baseUrl: string;
  bundlesFolder: string;
  /** Undefined: there is no scheduled call. */
  canary: CanaryOptions | undefined;
  /** Of the newest version of a function with a URL. Undefined: a deployment moves all calls at once. */
  alarmOf: ((name: FunctionName) => IAlarm) | undefined;
}

/** Not a construct: its parts have the ids that they would have in the relay itself. */
export class Rollout {
  readonly shift: TrafficShift | undefined;
  readonly canary: Canary | undefined;

  constructor(scope: Construct, { canary, alarmOf, functions, ...props }: RolloutProps) {
    // Its alarms alone look at these counts.
    if (alarmOf) countCallsByVersion(functions);
    this.shift = alarmOf && new TrafficShift(scope, 'Shift', { functions, alarmOf });
    this.canary = canary && new Canary(scope, 'Canary', { ...canary, ...props });
  }
}

// Shifts the calls of a deployment to the new version in steps, and back when its alarm triggers. Must never look at
// single errors: one process that runs out of memory is no reason to give up a healthy version.

interface TrafficShiftProps {
  functions: RelayFunctions;
  /** Of the newest version of a function with a URL. */
  alarmOf: (name: FunctionName) => IAlarm;
}

/** The role of one function's deployments, and the function. */
interface ShiftRole {
  role: Role;
  lambda: IFunction;
}

class TrafficShift extends Construct {
  readonly roles: ShiftRole[] = [];
  readonly #application: LambdaApplication;

  constructor(scope: Construct, id: string, { functions, alarmOf }: TrafficShiftProps) {
    super(scope, id);
    this.#application = new LambdaApplication(this, 'Application');
    for (const [name, { live }] of functions.byName)
      if (live !== undefined) this.#group(name, live, alarmOf(name));
  }

  #group(name: FunctionName, live: Alias, alarm: IAlarm): void {
    const { lambda } = live.version;
    const role = this.#role(name, lambda);
    const group = new LambdaDeploymentGroup(this, name, {
      application: this.#application,
      alias: live,
      // CDK would add a managed policy that lets the role move the aliases of all functions of the account.
      role: role.withoutPolicyUpdates(),
      deploymentConfig: LambdaDeploymentConfig.LINEAR_10PERCENT_EVERY_1MINUTE,
      alarms: [alarm],
      autoRollback: { failedDeployment: true, stoppedDeployment: true, deploymentInAlarm: true },
    });
    // A deployment that starts before its role may move the alias fails.
    group.node.addDependency(role);
  }

  /** One for each function: they wait for each other, and a common role would wait for all and be waited for by all. */
  #role(name: FunctionName, lambda: IFunction): Role {
    const role = new Role(this, `${name}Role`, {
      assumedBy: new ServicePrincipal('codedeploy.amazonaws.com'),
    });
    const actions = ['GetAlias', 'UpdateAlias', 'GetProvisionedConcurrencyConfig'];
    role.addToPolicy(allow('lambda', actions, lambda.functionArn, `${lambda.functionArn}:*`));
    role.addToPolicy(allow('cloudwatch', ['DescribeAlarms'], '*'));
    this.roles.push({ role, lambda });
    return role;
  }
}

// The scheduled call: a function of its own that calls the relay through its public address, as a customer would.

export interface CanaryOptions {
  /** Public name of a cheap model. */
  model: string;
  /** Reference of the key that it calls with: `ssm:/relay/<stack>/canary`. */
  key: string;
  /** Default: 5. */
  everyMinutes?: number;
}

interface CanaryProps extends CanaryOptions {
  relayName: string;
  version: string;
  tables: RelayTables;
  disposable: boolean;
  /** With `/v1`. */
  baseUrl: string;
  bundlesFolder: string;
}

class Canary extends Construct {
  readonly function: RelayFunction;

  constructor(scope: Construct, id: string, props: CanaryProps) {
    super(scope, id);
    const { relayName, version, tables, disposable, baseUrl, bundlesFolder } = props;
    const { model, key, everyMinutes = 5 } = props;
    this.function = new RelayFunction(this, 'canary', {
      description: {
        purpose: 'Calls the relay as a customer would, and counts the answers',
        timeoutSeconds: 60,
        memoryMegabytes: 128,
        tables: {},
        readsChannelSecrets: true,
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
      disposable,
      reservedConcurrency: undefined,
      relayName,
      tables,
    });
    const rule = new Rule(this, 'Schedule', {
      description: 'Runs function canary',
      schedule: Schedule.rate(Duration.minutes(everyMinutes)),
    });
    rule.addTarget(new LambdaFunction(this.function.lambda, { retryAttempts: 0 }));
  }
}
