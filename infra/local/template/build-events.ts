/** Connects table streams and schedules of the template to local functions. */
import type { LocalFunction } from '../lambda/local-function.ts';
import type { Mapping, MappingProperties } from '../event-source-mapping.ts';
import { getFunctionByName } from './build-functions.ts';
import { resourcesOf, functionOf, type LocalReferences } from './template.ts';
import { localAccount, localRegion } from '../host/local-options.ts';
import type { StackLog } from '../host/messages.ts';

type Functions = ReadonlyMap<string, LocalFunction>;

/** Their tables must exist. Destinations of failed batches are ignored. */
export function buildMappings(references: LocalReferences, functions: Functions): Mapping[] {
  return resourcesOf(references.template, 'AWS::Lambda::EventSourceMapping').map(
    ([id, { Properties = {} }]) => {
      const { FunctionName, DestinationConfig: _, ...rest } = Properties;
      const properties = references.resolve(rest) as MappingProperties;
      return {
        id,
        properties,
        target: getFunctionByName(functions, functionOf(FunctionName, references.template)),
      };
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

/** Returns rules with a schedule, once per target function. Rules on events are not emulated. */
export function buildSchedules({ template, resolve }: LocalReferences, functions: Functions): Schedule[] {
  return resourcesOf(template, 'AWS::Events::Rule').flatMap(([id, { Properties }]) => {
    const { ScheduleExpression: expression, State, Targets = [] } = Properties as RuleProperties;
    if (expression === undefined || State === 'DISABLED') return [];
    return Targets.map(({ Input, Arn }) => ({
      id,
      expression,
      event: Input === undefined ? buildScheduledEvent(id) : (JSON.parse(String(resolve(Input))) as unknown),
      target: getFunctionByName(functions, functionOf(Arn, template)),
    }));
  });
}

const buildScheduledEvent = (id: string) => ({
  version: '0',
  id,
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: localAccount,
  region: localRegion,
  resources: [`arn:aws:events:${localRegion}:${localAccount}:rule/${id}`],
  detail: {},
});

interface Schedule {
  id: string;
  expression: string;
  event: unknown;
  target: LocalFunction;
}

interface RunningSchedules {
  /** Runs all schedules at once. Resolves when every run has ended, successfully or not. */
  runAll(): Promise<void>;
  stop(): void;
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Milliseconds of `rate(5 minutes)`. Undefined for other expressions, which run only in `runAll`. */
function rateMs(expression: string): number | undefined {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0);
}

export function startSchedules(schedules: Schedule[], log: StackLog): RunningSchedules {
  const timers: NodeJS.Timeout[] = [];
  const run = ({ id, target, event }: Schedule): Promise<void> =>
    target.call(event).then(
      () => log(`schedule ${id} ran ${target.settings.name}`),
      (error: unknown) => log(`schedule ${id} failed: ${(error as Error).message}`),
    );
  for (const schedule of schedules) {
    const every = rateMs(schedule.expression);
    if (every === undefined)
      log(`schedule ${schedule.id} (${schedule.expression}) runs on SIGUSR2 only: it is not a rate`);
    else timers.push(setInterval(() => void run(schedule), every));
  }
  return {
    runAll: async () => void (await Promise.all(schedules.map(run))),
    stop: () => timers.forEach(clearInterval),
  };
}
