/**
 * A double of CodeDeploy for one alias of a template: shifts as its deployment group says, asks for the group's alarms
 * each minute, and goes back when one of them is in ALARM.
 */
import { resourcesOf, type Template } from '../infra/synthesize.ts';

export interface DeploymentPlan {
  /** Logical ids. */
  alarms: string[];
  /** Share of the calls that the new version has in each minute. */
  weights: number[];
}

interface Group {
  DeploymentConfigName: string;
  AlarmConfiguration: { Enabled: boolean; Alarms: { Name: { Ref: string } }[] };
  AutoRollbackConfiguration: { Enabled: boolean; Events: string[] };
}

/** What the template says of deployments of the alias with this logical id. Throws when it would not roll back. */
export function planOf(template: Template, aliasId: string): DeploymentPlan {
  const policy = (template.Resources[aliasId] as { UpdatePolicy?: Record<string, unknown> } | undefined)
    ?.UpdatePolicy;
  const update = policy?.['CodeDeployLambdaAliasUpdate'] as { DeploymentGroupName: { Ref: string } };
  const groups = new Map(resourcesOf(template, 'AWS::CodeDeploy::DeploymentGroup'));
  const group = groups.get(update.DeploymentGroupName.Ref)?.Properties as unknown as Group;
  const { AlarmConfiguration, AutoRollbackConfiguration, DeploymentConfigName } = group;
  if (!AlarmConfiguration.Enabled || !AutoRollbackConfiguration.Enabled)
    throw new Error('nothing is rolled back');
  if (!AutoRollbackConfiguration.Events.includes('DEPLOYMENT_STOP_ON_ALARM'))
    throw new Error('an alarm rolls nothing back');
  const [, percent, minutes] =
    /^CodeDeployDefault\.LambdaLinear(\d+)PercentEvery(\d+)Minutes?$/.exec(DeploymentConfigName) ?? [];
  if (percent === undefined || minutes !== '1') throw new Error(`not known: ${DeploymentConfigName}`);
  const steps = 100 / Number(percent);
  return {
    alarms: AlarmConfiguration.Alarms.map(({ Name }) => Name.Ref),
    weights: Array.from({ length: steps }, (_, step) => ((step + 1) * Number(percent)) / 100),
  };
}

export interface Deployment {
  plan: DeploymentPlan;
  alias: { weight: number };
  triggers: (alarm: string) => boolean;
  /** Makes the calls of one minute. */
  minute: (minute: number) => Promise<void>;
}

/** How it ended, and after how many minutes. Weights are as CodeDeploy leaves them. */
export async function deploy({ plan, alias, triggers, minute }: Deployment): Promise<{
  status: 'Succeeded' | 'RolledBack';
  minutes: number;
}> {
  for (const [index, weight] of plan.weights.entries()) {
    alias.weight = weight;
    await minute(index + 1);
    if (!plan.alarms.some((alarm) => triggers(alarm))) continue;
    alias.weight = 0;
    return { status: 'RolledBack', minutes: index + 1 };
  }
  return { status: 'Succeeded', minutes: plan.weights.length };
}
