import type { LocalFunction } from '../lambda/local-function.ts';
import { readMapping, type MappingProperties, type MappingSettings } from '../events/mapping-settings.ts';
import type { Schedule } from '../events/schedules.ts';
import { functionNamed } from './build-functions.ts';
import { resourcesOf } from './read-template.ts';
import { functionOf, type LocalReferences } from './references.ts';
import { localAccount, localRegion } from '../host/identity.ts';

type Functions = ReadonlyMap<string, LocalFunction>;

/** The enabled event source mappings; their tables must exist. Destinations of failed batches are not followed. */
export function buildMappings(references: LocalReferences, functions: Functions): MappingSettings[] {
  return resourcesOf(references.template, 'AWS::Lambda::EventSourceMapping').flatMap(
    ([id, { Properties = {} }]) => {
      const { FunctionName, DestinationConfig: _, ...rest } = Properties;
      const properties = references.resolve(rest) as MappingProperties;
      if (properties.Enabled === false) return [];
      return [readMapping(id, properties, functionNamed(functions, functionOf(FunctionName)))];
    },
  );
}

interface Target {
  Arn: unknown;
  Input?: string;
}

interface RuleProperties {
  ScheduleExpression?: string;
  State?: string;
  Targets?: Target[];
}

interface ScheduleProperties {
  ScheduleExpression: string;
  State?: string;
  Target: Target;
}

/** Rules with a schedule, and schedules, one for each function they call. Rules on events are not emulated. */
export function buildSchedules(references: LocalReferences, functions: Functions): Schedule[] {
  const { template, resolve } = references;
  const rules = resourcesOf(template, 'AWS::Events::Rule').flatMap(([id, { Properties }]) => {
    const { ScheduleExpression: expression, State: state, Targets } = Properties as unknown as RuleProperties;
    return (Targets ?? []).map((target) => ({ id, expression, state, target, source: 'aws.events' }));
  });
  const schedules = resourcesOf(template, 'AWS::Scheduler::Schedule').map(([id, { Properties }]) => {
    const {
      ScheduleExpression: expression,
      State: state,
      Target: target,
    } = Properties as unknown as ScheduleProperties;
    return { id, expression, state, target, source: 'aws.scheduler' };
  });
  return [...rules, ...schedules].flatMap(({ id, expression, state, target, source }) => {
    if (expression === undefined || state === 'DISABLED') return [];
    const event: unknown =
      target.Input === undefined ? scheduledEvent(source, id) : JSON.parse(String(resolve(target.Input)));
    return [{ id, expression, event, target: functionNamed(functions, functionOf(target.Arn)) }];
  });
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
