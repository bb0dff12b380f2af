import type { LocalFunction } from '../lambda/local-function.ts';
import { readMapping, type MappingProperties, type MappingSettings } from '../events/mapping-settings.ts';
import type { Schedule } from '../events/schedules.ts';
import { functionNamed } from './build-functions.ts';
import { resourcesOf, type Template } from './read-template.ts';
import { functionOf, type LocalReferences } from './references.ts';
import { localAccount, localRegion } from '../host/identity.ts';

type Functions = ReadonlyMap<string, LocalFunction>;

/** The enabled event source mappings; their tables must exist. Destinations of failed batches are not followed. */
export function buildMappings(
  template: Template,
  references: LocalReferences,
  functions: Functions,
): MappingSettings[] {
  return resourcesOf(template, 'AWS::Lambda::EventSourceMapping').flatMap(([id, { Properties = {} }]) => {
    const { FunctionName, DestinationConfig: _, ...rest } = Properties;
    const properties = references.resolve(rest) as MappingProperties;
    if (properties.Enabled === false) return [];
    return [readMapping(id, properties, functionNamed(functions, functionOf(FunctionName)))];
  });
}

interface RuleProperties {
  ScheduleExpression?: string;
  State?: string;
  Targets?: { Arn: unknown; Input?: string }[];
}

interface ScheduleProperties {
  ScheduleExpression: string;
  State?: string;
  Target: { Arn: unknown; Input?: string };
}

/** Rules with a schedule, and schedules, one for each function they call. Rules on events have nothing to hear here. */
export function buildSchedules(
  template: Template,
  references: LocalReferences,
  functions: Functions,
): Schedule[] {
  const schedule = (
    id: string,
    expression: string,
    target: { Arn: unknown; Input?: string },
    event: unknown,
  ) => ({
    id,
    expression,
    event: target.Input === undefined ? event : JSON.parse(String(references.resolve(target.Input))),
    target: functionNamed(functions, functionOf(target.Arn)),
  });
  const rules = resourcesOf(template, 'AWS::Events::Rule').flatMap(([id, resource]) => {
    const { ScheduleExpression, State, Targets = [] } = resource.Properties as unknown as RuleProperties;
    if (ScheduleExpression === undefined || State === 'DISABLED') return [];
    return Targets.map((target) =>
      schedule(id, ScheduleExpression, target, scheduledEvent('aws.events', id)),
    );
  });
  const schedules = resourcesOf(template, 'AWS::Scheduler::Schedule').flatMap(([id, resource]) => {
    const { ScheduleExpression, State, Target } = resource.Properties as unknown as ScheduleProperties;
    if (State === 'DISABLED') return [];
    return [schedule(id, ScheduleExpression, Target, scheduledEvent('aws.scheduler', id))];
  });
  return [...rules, ...schedules];
}

const scheduledEvent = (source: string, id: string) => ({
  version: '0',
  id,
  'detail-type': 'Scheduled Event',
  source,
  account: localAccount,
  region: localRegion,
  resources: [`arn:aws:events:${localRegion}:${localAccount}:rule/${id}`],
  detail: {},
});
