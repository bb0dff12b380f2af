/** A stage with every option that adds or changes resources. Its region is not the one of CloudFront. */

export const certificateArn =
  'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';

export const everyOption = {
  region: 'eu-central-1',
  domain: 'api.example.com',
  certificateArn,
  hostedZone: { id: 'Z0123456789ABC', name: 'example.com' },
  alarmEmail: 'ops@example.com',
  edgeAlarms: true,
  budget: { monthlyUsd: 100 },
  alertSender: 'relay@example.com',
  originSecrets: [1, 2],
  sealKeys: [1, 2],
  bedrockModels: ['arn:aws:bedrock:eu-central-1::foundation-model/openai.gpt-oss-120b-1:0'],
  reservedConcurrency: 200,
  memory: { chat: 512 },
  limits: { account_rpm: 60 },
  logRetentionDays: 90,
  tracing: { endpoint: 'https://otel.example.com:4318' },
  webAcl: true,
};
