/** The scheduled call: a function of its own that calls the relay through its public address, as a customer would. */
import { join } from 'node:path';
import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { RelayFunction } from '../constructs/relay-function.ts';
import type { RelayTables } from '../constructs/relay-tables.ts';

export interface CanarySettings {
  /** Public name of a cheap model. */
  model: string;
  /** Reference of the key that it calls with: `ssm:/relay/<stack>/canary`. */
  key: string;
  /** Default: 5. */
  everyMinutes?: number;
}

export interface CanaryProps extends CanarySettings {
  relayName: string;
  version: string;
  tables: RelayTables;
  disposable: boolean;
  /** With `/v1`. */
  baseUrl: string;
  bundlesFolder: string;
}

export class Canary extends Construct {
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
