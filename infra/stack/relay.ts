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
import type { Objectives } from './observe/objective-alarms.ts';
import { versionAlarmId } from './observe/version-alarms.ts';
import { canaryAlarm } from './observe/request-alarms.ts';
import { Canary, type CanarySettings } from './rollout/canary.ts';
import { TrafficShift } from './rollout/traffic-shift.ts';
import { countCallsByVersion } from './rollout/version-metrics.ts';
import { SavedQueries } from './observe/saved-queries.ts';
import { RelayTables } from './constructs/relay-tables.ts';
import { Triggers } from './constructs/triggers.ts';

export interface RelayProps {
  /** The first part of all names: of tables, metrics, secrets. Lower case, at most 27 characters. Default: `relay`. */
  name?: string;
  /** For trials: tables have no deletion protection and are deleted with the stack. Default: false. */
  disposable?: boolean;
  /** The public host name, and its certificate in us-east-1, the one region CloudFront reads certificates from. */
  domain?: RelayDomain;
  /** Receives what alarms say. Default: alarms tell nobody. */
  alarmEmail?: string;
  /** Receives alarms that must wake somebody, apart from the others. Default: `alarmEmail` receives all. */
  pageEmail?: string;
  /** What the alarms hold the relay to. Default: 99.5 % availability; 95 % of answers begin within 10 s. */
  objectives?: Objectives;
  /**
   * A deployment shifts calls to the new versions in ten steps of a minute, and back when they fail. Default: true. False: at
   * once, for a fix that cannot wait.
   */
  shifting?: boolean;
  /**
   * A scheduled call through the public address, with a key that is stored beside the secrets of channels. Default: none. It
   * costs the tokens of its calls, and with the default of every five minutes some 0.50 dollars a month on AWS.
   */
  canary?: CanarySettings;
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
  /**
   * Busy accounts stay one item. For the deployment that follows one of version 0.1, whose functions do not know parts and run
   * beside the new ones for minutes, or again after a rollback. Default: false.
   */
  oneItemPerAccount?: boolean;
  /** ARNs of the Bedrock models that channels may call with the functions' own role. Default: none. */
  bedrockModels?: readonly string[];
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
  /** What clients set as base_url. */
  readonly baseUrl: string;

  constructor(scope: Construct, id: string, props: RelayProps = {}) {
    super(scope, id);
    const { name: relayName = 'relay', disposable = false, domain, alarmEmail, alertSender } = props;
    const bundlesFolder = props.bundlesFolder ?? join(packageFolder, 'dist');
    const tables = new RelayTables(this, 'Tables', { relayName, disposable });
    const originSecrets = new OriginSecrets(this, 'Origin', { numbers: props.originSecrets ?? [1] });
    const sealKeys = new SealKeys(this, 'SealKeys', { numbers: props.sealKeys ?? [1] });
    const functions = new RelayFunctions(this, 'Functions', {
      relayName,
      version: packageVersion(),
      tables,
      acceptedOriginSecrets: originSecrets.accepted,
      sealKeys: sealKeys.variable,
      publicHost: domain?.name,
      reservedConcurrency: props.reservedConcurrency,
      oneItemPerAccount: props.oneItemPerAccount,
      bundlesFolder,
    });
    allowBedrockModels(functions, props.bedrockModels ?? []);
    const triggers = new Triggers(this, 'Triggers', { tables, functions, disposable });
    // The logical id is derived from this id. A new id would replace the deployed distribution, so the old
    // one stays.
    const distribution = new RelayDistribution(this, 'FrontDoor', {
      relayName,
      functions,
      sentOriginSecret: originSecrets.sent,
      ...(domain && { domain }),
    });
    const { objectives = {}, pageEmail, shifting = true } = props;
    const alarms = new Alarms(this, 'Alarms', {
      relayName,
      functions,
      triggers,
      objectives,
      shifting,
      ...(alarmEmail !== undefined && { email: alarmEmail }),
      ...(pageEmail !== undefined && { pageEmail }),
    });
    countCallsByVersion(functions);
    const shift =
      shifting &&
      new TrafficShift(this, 'Shift', { functions, alarmOf: (name) => alarms.get(versionAlarmId(name)) });
    allowNotices(functions, { topic: alarms.topic, sender: alertSender });
    this.baseUrl = `https://${distribution.host}/v1`;
    if (props.canary) {
      new Canary(this, 'Canary', {
        ...props.canary,
        relayName,
        version: packageVersion(),
        tables,
        baseUrl: this.baseUrl,
        bundlesFolder,
      });
      alarms.add(canaryAlarm(relayName));
    }
    new Dashboard(this, 'Dashboard', { relayName, functions, triggers, alarms });
    new SavedQueries(this, 'SavedQueries', { relayName, functions });

    new CfnOutput(this, 'BaseUrl', { description: 'What clients set as base_url', value: this.baseUrl });
    acknowledgeFindings({
      relayName,
      functions,
      originSecrets,
      sealKeys,
      distribution,
      triggers,
      ...(shift && { shift }),
    });
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
