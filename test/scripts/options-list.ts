/** Writes the list of options in docs/options.md from the table of options. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OptionName } from '../../infra/stack/options/option-table.ts';
import { optionsSchema } from './options-schema.ts';

const page = join(import.meta.dirname, '..', '..', 'docs', 'options.md');

/** Where an option is explained. */
const explanations: { readonly [Name in OptionName]?: string } = {
  region: '#regions',
  frontDoor: 'deploy.md#front-doors',
  vpc: 'deploy.md#front-doors',
  objectives: 'observability.md#alarms',
  canary: 'observability.md#the-scheduled-call',
  console: 'console.md',
  shifting: 'operate.md#deploy-in-steps-and-roll-back',
  edgeAlarms: '#the-edge',
  budget: '#budget',
  alertSender: 'operate.md#alerts',
  originSecrets: 'deploy.md#rotate-the-origin-secrets',
  sealKeys: 'operate.md#options-of-a-deployment',
  bedrockModels: 'channels.md#amazon-bedrock',
  unboundSecrets: 'operate.md#secrets',
  compute: 'server.md#on-ecs',
  service: 'server.md#on-ecs',
  moneyConcurrency: '#concurrency-of-the-books',
  backgroundMinutes: '#background-runs',
  memory: '#memory',
  awsClient: 'operate.md#the-client-of-the-tables',
  limits: '#limits',
  tracing: '#tracing',
  webAcl: '#the-edge',
  accessLog: '#the-edge',
  backupCopies: '#copies-in-another-region',
  ledgerStream: '#the-ledger-in-a-data-lake',
  encryptionKeyArn: '#a-key-of-your-own',
  encryptionKeyArns: '#keys-for-what-is-not-a-table',
};

/** Fields of a map are named, unless each stands for a function or is a setting. */
const isNamed = (name: string): boolean => name !== 'memory' && name !== 'limits';

export function optionsList(): string {
  const { properties } = optionsSchema() as {
    properties: Record<string, { description?: string; default?: unknown; properties?: object }>;
  };
  return Object.entries(properties)
    .filter(([name]) => name !== '$schema')
    .map(([name, { description = '', default: standard, properties: fields }]) => {
      const value = standard === undefined ? '' : ` (\`${JSON.stringify(standard)}\`)`;
      const shape = fields && isNamed(name) ? ` \`{${Object.keys(fields).join(', ')}}\`` : '';
      const target = explanations[name as OptionName];
      return `- \`${name}\`${value}:${shape}${shape && ','} ${description}${target ? ` ([more](${target}))` : ''}`;
    })
    .join('\n');
}

/** The list after its comment, up to the next empty line. */
export const optionsInPage = /(?<=^<!-- made by test\/scripts\/options-list\.ts -->\n\n)[^]*?(?=\n\n)/m;

if (import.meta.main)
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(optionsInPage, () => optionsList()),
  );
