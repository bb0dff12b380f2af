/** Six deployments with everything between nothing and all, for checks of whole templates. */

const account = '123456789012';
const certificateArn = `arn:aws:acm:us-east-1:${account}:certificate/12345678-1234-1234-1234-123456789012`;
const keyIn = (region: string) => `arn:aws:kms:${region}:${account}:key/12345678-1234-1234-1234-123456789012`;

export const optionSets: Record<string, Record<string, unknown>> = {
  'no options': {},
  'a trial': {
    stage: 'trial',
    disposable: true,
    alarms: false,
    shifting: false,
    logRetentionDays: 1,
    accessLog: true,
    memory: { sweeper: 128 },
  },
  'a domain and a mail address': {
    stage: 'mail',
    domain: 'api.example.com',
    certificateArn,
    alarmEmail: 'ops@example.com',
    alertSender: 'relay@example.com',
    originSecrets: [1, 2],
    sealKeys: [1, 2],
    budget: { monthlyUsd: 500 },
  },
  'everything in us-east-1': {
    stage: 'prod',
    region: 'us-east-1',
    domain: 'llm.example.com',
    certificateArn,
    hostedZone: { id: 'Z0123456789ABC', name: 'example.com' },
    alarmTopicArn: `arn:aws:sns:us-east-1:${account}:ops`,
    edgeAlarms: true,
    webAcl: true,
    accessLog: 'company-edge-logs',
    encryptionKeyArn: keyIn('us-east-1'),
    pageEmail: 'night@example.com',
    objectives: { availabilityPercent: 99.9 },
    canary: { model: 'gpt-5-nano', key: 'ssm:/relay/relay-prod/canary' },
    reservedConcurrency: 200,
    memory: { chat: 512, responses: 512 },
    limits: { account_rpm: 600, account_concurrency: 20 },
    logRetentionDays: 90,
    tracing: { endpoint: 'https://otel.example.com', headersSecret: 'relay-prod/otel', share: 0.5 },
    bedrockModels: ['arn:aws:bedrock:us-east-1::foundation-model/openai.gpt-oss-120b-1:0'],
    budget: {
      monthlyUsd: 2000,
      email: 'money@example.com',
      topicArn: `arn:aws:sns:us-east-1:${account}:money`,
    },
  },
  'eu-central-1 with a stack at the edge': {
    stage: 'eu',
    region: 'eu-central-1',
    webAcl: true,
    webAclRequestsPerMinute: 1200,
    edgeAlarms: true,
    alarmEmail: 'ops@example.com',
    accessLog: true,
    encryptionKeyArn: keyIn('eu-central-1'),
  },
  'an ACL and a topic that exist, without a region': {
    stage: 'given',
    webAcl: `arn:aws:wafv2:us-east-1:${account}:global/webacl/company/12345678-1234-1234-1234-123456789012`,
    alarmTopicArn: `arn:aws:sns:ap-northeast-1:${account}:ops`,
    encryptionKeyArn: keyIn('ap-northeast-1'),
  },
};
