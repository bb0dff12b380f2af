/**
 * Shifts the calls of a deployment to the new version in steps, and back when its alarm triggers. Must never look at
 * single errors: one process that runs out of memory is no reason to give up a healthy version.
 */
import type { IAlarm } from 'aws-cdk-lib/aws-cloudwatch';
import { LambdaApplication, LambdaDeploymentConfig, LambdaDeploymentGroup } from 'aws-cdk-lib/aws-codedeploy';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Alias, IFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { allow } from '../constructs/allow.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';

export interface TrafficShiftProps {
  functions: RelayFunctions;
  /** Of the newest version of a function with a URL. */
  alarmOf: (name: FunctionName) => IAlarm;
}

/** The role of one function's deployments, and the function. */
export interface ShiftRole {
  role: Role;
  lambda: IFunction;
}

export class TrafficShift extends Construct {
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
