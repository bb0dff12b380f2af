/** The whole relay as one stack: only composes the constructs. */
import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { acknowledgeFindings } from './acknowledged-findings.ts';
import { Alarms } from './observe/alarms.ts';
import { allowBedrockModels } from './constructs/bedrock-access.ts';
import { allowNotices } from './constructs/notice-access.ts';
import { Dashboard } from './observe/dashboard.ts';
import { RelayDistribution } from './constructs/distribution.ts';
import { RelayFunctions } from './constructs/relay-functions.ts';
import type { StackOptions } from './options/stack-options.ts';
import { OriginSecrets } from './constructs/origin-secrets.ts';
import { SealKeys } from './constructs/seal-keys.ts';
import { SavedQueries } from './observe/saved-queries.ts';
import { RelayTables } from './constructs/relay-tables.ts';
import { Triggers } from './constructs/triggers.ts';

export interface RelayStackProps {
  options: StackOptions;
  version: string;
  /** The build's output: one folder per function. */
  bundlesFolder: string;
}

export class RelayStack extends Stack {
  readonly alarms: Alarms;
  readonly dashboard: Dashboard;
  readonly savedQueries: SavedQueries;
  /** The value that clients set as base_url. */
  readonly baseUrl: CfnOutput;

  constructor(scope: Construct, props: RelayStackProps) {
    const { stackName, disposable, domain, alarmEmail, alertSender } = props.options;
    super(scope, stackName, { stackName, description: `OpenAI-compatible LLM relay ${props.version}` });

    const tables = new RelayTables(this, 'Tables', { stackName, disposable });
    const originSecrets = new OriginSecrets(this, 'Origin', { numbers: props.options.originSecrets });
    const sealKeys = new SealKeys(this, 'SealKeys', { numbers: props.options.sealKeys });
    const functions = new RelayFunctions(this, 'Functions', {
      stackName,
      version: props.version,
      tables,
      acceptedOriginSecrets: originSecrets.accepted,
      sealKeys: sealKeys.variable,
      publicHost: domain?.name,
      reservedConcurrency: props.options.reservedConcurrency,
      bundlesFolder: props.bundlesFolder,
    });
    allowBedrockModels(functions, props.options.bedrockModels);
    const triggers = new Triggers(this, 'Triggers', { tables, functions, disposable });
    // The logical id is derived from this id. A new id would replace the deployed distribution, so the old
    // one stays.
    const distribution = new RelayDistribution(this, 'FrontDoor', {
      stackName,
      functions,
      sentOriginSecret: originSecrets.sent,
      ...(domain && { domain }),
    });
    this.alarms = new Alarms(this, 'Alarms', {
      stackName,
      functions,
      triggers,
      ...(alarmEmail !== undefined && { email: alarmEmail }),
    });
    allowNotices(functions, { topic: this.alarms.topic, sender: alertSender });
    this.dashboard = new Dashboard(this, 'Dashboard', {
      stackName,
      functions,
      triggers,
      alarms: this.alarms,
    });
    this.savedQueries = new SavedQueries(this, 'SavedQueries', { stackName, functions });

    this.baseUrl = new CfnOutput(this, 'BaseUrl', {
      description: 'What clients set as base_url',
      value: `https://${distribution.host}/v1`,
    });
    acknowledgeFindings({ stackName, functions, originSecrets, sealKeys, distribution, triggers });
  }
}
