/** How new code gets its calls: counted by version, shifted step by step, and tried by a scheduled call. Only composes. */
import type { IAlarm } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { RelayTables } from '../constructs/relay-tables.ts';
import { Canary, type CanarySettings } from './canary.ts';
import { TrafficShift } from './traffic-shift.ts';
import { countCallsByVersion } from './version-metrics.ts';

export interface RolloutProps {
  relayName: string;
  version: string;
  tables: RelayTables;
  disposable: boolean;
  functions: RelayFunctions;
  /** With `/v1`. */
  baseUrl: string;
  bundlesFolder: string;
  /** Undefined: there is no scheduled call. */
  canary: CanarySettings | undefined;
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
