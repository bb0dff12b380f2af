/**
 * A double of CodeDeploy for one alias of a template: shifts traffic as its deployment group says, checks the group's
 * alarms each minute, and rolls back when one is in ALARM.
 */
import { resourcesOf, type Template } from '../infra/synthesize.ts';

export interface DeploymentPlan {
  /** Logical ids. */
  alarms: string[];
  /** The new version's share of calls in each minute in which its alarms are checked. It gets all calls afterwards. */
  weights: number[];
}

interface Group {
  DeploymentConfigName: string;
  AlarmConfiguration: { Enabled: boolean; Alarms: { Name: { Ref: string } }[] };
  AutoRollbackConfiguration: { Enabled: boolean; Events: string[] };
}

/** The deployment plan of the alias with this logical id. Throws if its deployments would not roll back. */
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
  const alarms = AlarmConfiguration.Alarms.map(({ Name }) => Name.Ref);
  return { alarms, weights: weightsOf(DeploymentConfigName) };
}

/** CodeDeploy's predefined configurations for functions: a canary, and linear by a tenth each minute. */
function weightsOf(configuration: string): number[] {
  const [, kind, percent, minutes] =
    /^CodeDeployDefault\.Lambda(Linear|Canary)(\d+)Percent(?:Every)?(\d+)Minutes?$/.exec(configuration) ?? [];
  const share = Number(percent) / 100;
  if (kind === 'Canary') return Array.from({ length: Number(minutes) }, () => share);
  if (kind !== 'Linear' || minutes !== '1') throw new Error(`not known: ${configuration}`);
  return Array.from({ length: 1 / share }, (_, step) => Math.round((step + 1) * share * 100) / 100);
}

export interface Deployment {
  plan: DeploymentPlan;
  alias: { weight: number };
  triggers: (alarm: string) => boolean;
  /** Makes the calls of one minute. */
  minute: (minute: number) => Promise<void>;
}

/** Returns the final status and the minutes it took, and leaves the weights as CodeDeploy does. */
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
  alias.weight = 1;
  return { status: 'Succeeded', minutes: plan.weights.length };
}
