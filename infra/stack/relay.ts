/**
 * The whole relay as one construct, for stacks of this repository and of others. Only composes.
 * Its logical ids and names are those of deployed stacks: a change of a child's id would replace customers' tables.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CfnOutput } from 'aws-cdk-lib';
import type { ICertificate } from 'aws-cdk-lib/aws-certificatemanager';
import { Construct } from 'constructs';
import { acknowledgeFindings } from './acknowledged-findings.ts';
import { Alarms } from './observe/alarms.ts';
import { allowBedrockModels } from './constructs/bedrock-access.ts';
import { allowNotices } from './constructs/notice-access.ts';
import { Dashboard } from './observe/dashboard.ts';
import { RelayDistribution } from './constructs/distribution.ts';
import { RelayFunctions } from './constructs/relay-functions.ts';
import { OriginSecrets } from './constructs/origin-secrets.ts';
import { SealKeys } from './constructs/seal-keys.ts';
import { SavedQueries } from './observe/saved-queries.ts';
import { RelayTables } from './constructs/relay-tables.ts';
import { Triggers } from './constructs/triggers.ts';
import { RelayWebFunction } from './constructs/web-function.ts';

export interface RelayProps {
  /** The first part of all names: of tables, metrics, secrets. Lower case, at most 27 characters. Default: `relay`. */
  name?: string;
  /** For trials: tables have no deletion protection and are deleted with the stack. Default: false. */
  disposable?: boolean;
  /** The public host name, and its certificate in us-east-1, the one region CloudFront reads certificates from. */
  domain?: RelayDomain;
  /** Receives what alarms say. Default: alarms tell nobody. */
  alarmEmail?: string;
  /** The address that mail to customers comes from: an identity that SES has verified. Default: none is sent. */
  alertSender?: string;
  /** Numbers of the origin secrets, oldest first. CloudFront sends the last; functions accept all. Default: `[1]`. */
  originSecrets?: readonly number[];
  /** Numbers of the keys that seal the state of turns, ascending. The last seals; all open. Default: `[1]`. */
  sealKeys?: readonly number[];
  /**
   * Calls at once that AWS reserves for each of the functions `chat` and `responses`, and their bound. Default: they share
   * what the AWS account has.
   */
  reservedConcurrency?: number;
  /** ARNs of the Bedrock models that channels may call with the functions' own role. Default: none. */
  bedrockModels?: readonly string[];
  /**
   * What answers requests: `event`, a Lambda function for each group of endpoints, behind Function URLs; or `web`, one HTTP
   * server as a Lambda Web Function. `web` is experimental: docs/server.md says what is not known. Default: `event`.
   */
  compute?: 'event' | 'web';
  /** The build's output, one folder a function. Default: the one of this package. */
  bundlesFolder?: string;
}

export interface RelayDomain {
  name: string;
  certificate: ICertificate;
}

const packageFolder = join(import.meta.dirname, '..', '..');

export class Relay extends Construct {
  readonly tables: RelayTables;
  readonly functions: RelayFunctions;
  readonly distribution: RelayDistribution;
  readonly alarms: Alarms;
  readonly dashboard: Dashboard;
  readonly savedQueries: SavedQueries;
  /** What clients set as base_url. */
  readonly baseUrl: string;
  readonly baseUrlOutput: CfnOutput;

  constructor(scope: Construct, id: string, props: RelayProps = {}) {
    super(scope, id);
    const { name: relayName = 'relay', disposable = false, domain, alarmEmail, alertSender } = props;
    const tables = new RelayTables(this, 'Tables', { relayName, disposable });
    const originSecrets = new OriginSecrets(this, 'Origin', { numbers: props.originSecrets ?? [1] });
    const sealKeys = new SealKeys(this, 'SealKeys', { numbers: props.sealKeys ?? [1] });
    const answering = {
      relayName,
      version: packageVersion(),
      acceptedOriginSecrets: originSecrets.accepted,
      sealKeys: sealKeys.variable,
      publicHost: domain?.name,
      bundlesFolder: props.bundlesFolder ?? join(packageFolder, 'dist'),
    };
    const { reservedConcurrency } = props;
    const functions = new RelayFunctions(this, 'Functions', { ...answering, tables, reservedConcurrency });
    const server =
      props.compute === 'web' ? new RelayWebFunction(this, 'Server', { ...answering, functions }) : undefined;
    allowBedrockModels(functions, props.bedrockModels ?? [], server);
    const triggers = new Triggers(this, 'Triggers', { tables, functions, disposable });
    // The logical id is derived from this id. A new id would replace the deployed distribution, so the old
    // one stays.
    const distribution = new RelayDistribution(this, 'FrontDoor', {
      relayName,
      functions,
      sentOriginSecret: originSecrets.sent,
      serverHost: server?.host,
      ...(domain && { domain }),
    });
    const alarms = new Alarms(this, 'Alarms', {
      relayName,
      functions,
      triggers,
      ...(alarmEmail !== undefined && { email: alarmEmail }),
    });
    allowNotices(functions, { topic: alarms.topic, sender: alertSender });
    this.dashboard = new Dashboard(this, 'Dashboard', { relayName, functions, triggers, alarms });
    this.savedQueries = new SavedQueries(this, 'SavedQueries', { relayName, functions });

    this.baseUrl = `https://${distribution.host}/v1`;
    this.baseUrlOutput = new CfnOutput(this, 'BaseUrl', {
      description: 'What clients set as base_url',
      value: this.baseUrl,
    });
    acknowledgeFindings({ relayName, functions, originSecrets, sealKeys, distribution, triggers, server });
    this.tables = tables;
    this.functions = functions;
    this.distribution = distribution;
    this.alarms = alarms;
  }
}

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
