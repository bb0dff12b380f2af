import type { LocalFunction } from '../lambda/local-function.ts';
import { readMapping, type MappingProperties, type MappingSettings } from '../events/mapping-settings.ts';
import type { Schedule } from '../events/schedules.ts';
import { functionNamed } from './build-functions.ts';
import { resourcesOf } from './read-template.ts';
import { functionOf, type LocalReferences } from './references.ts';
import { localAccount, localRegion } from '../host/identity.ts';

type Functions = ReadonlyMap<string, LocalFunction>;

/** Returns the enabled mappings; their tables must exist. Destinations of failed batches are ignored. */
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

/** Properties of a rule or of a schedule. */
interface ScheduledProperties {
  ScheduleExpression?: string;
  State?: string;
  /** Only in a rule. */
  Targets?: Target[];
  /** Only in a schedule. */
  Target?: Target;
}

/**
 * Returns schedules, and rules with a schedule, once per target function. Rules on events are not emulated.
 */
export function buildSchedules(references: LocalReferences, functions: Functions): Schedule[] {
  const { template, resolve } = references;
  const scheduled = resourcesOf(template, 'AWS::Events::Rule', 'AWS::Scheduler::Schedule');
  return scheduled.flatMap(([id, { Type, Properties }]) => {
    const { ScheduleExpression: expression, State, Targets, Target } = Properties as ScheduledProperties;
    if (expression === undefined || State === 'DISABLED') return [];
    const source = Type === 'AWS::Events::Rule' ? 'aws.events' : 'aws.scheduler';
    return [Targets ?? [], Target ?? []].flat().map(({ Input, Arn }) => ({
      id,
      expression,
      event:
        Input === undefined ? scheduledEvent(source, id) : (JSON.parse(String(resolve(Input))) as unknown),
      target: functionNamed(functions, functionOf(Arn)),
    }));
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
