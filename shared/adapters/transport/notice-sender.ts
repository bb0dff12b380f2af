/** Sends notices to the deployment's topic, by mail, and to signed webhooks. */
import { createHmac } from 'node:crypto';
import type { NoticeSender, NoticeTarget } from '../../relay/ports/alerts.ts';
import type { Clock, UpstreamTransport } from '../../relay/ports/host.ts';
import type { Notice } from '../../wire/public-api.ts';
import type { SecretStore } from '../../relay/ports/config-store.ts';
import { TransportError, type UpstreamRequest } from '../../upstreams/exchange.ts';

interface NoticeSenderDeps extends WebhookDeps {
  region: string;
  topic?: string | undefined;
  /** The verified address that mail to customers comes from. */
  sender?: string | undefined;
}

export function createNoticeSender({ topic, sender, region, ...deps }: NoticeSenderDeps): NoticeSender {
  return {
    offers: { topic: topic !== undefined, mail: sender !== undefined },
    async send(target, notice) {
      if (target.kind === 'webhook') return postNotice(deps, target, notice);
      if (target.kind === 'topic')
        return topic === undefined ? 'no_topic' : sendOnce(deps.transport, buildTopicRequest(topic, notice));
      if (sender === undefined) return 'no_sender';
      return sendOnce(deps.transport, buildMailRequest({ region, from: sender, to: target.to }, notice));
    },
  };
}

// Webhooks follow the rules of a channel's endpoint: https, a public address, no redirects. The receiver's answer is not
// read. Must never log an address or a secret.

const timeoutMs = 10_000;

interface WebhookDeps {
  transport: UpstreamTransport;
  secrets: Pick<SecretStore, 'read'>;
  clock: Pick<Clock, 'now'>;
}

type Webhook = Extract<NoticeTarget, { kind: 'webhook' }>;

export async function postNotice(
  { transport, secrets, clock }: WebhookDeps,
  { url, signs, account }: Webhook,
  notice: Notice,
): Promise<string | undefined> {
  let secret: string;
  try {
    secret = await secrets.read(signs);
  } catch {
    return 'no_secret';
  }
  const body = JSON.stringify(notice);
  const timestamp = String(Math.floor(clock.now() / 1000));
  const key = account === undefined ? secret : deriveCustomerSecret(secret, account);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'relay-notices',
    'x-relay-timestamp': timestamp,
    'x-relay-signature': `v1=${signText(key, `${timestamp}.${body}`)}`,
  };
  return sendOnce(transport, { url, headers, body, connectTimeoutMs: timeoutMs });
}

/** A secret per customer, so that none can sign what another receives. */
export const deriveCustomerSecret = (secret: string, account: string): string =>
  signText(secret, `contact:${account}`);

const signText = (key: string, text: string): string => createHmac('sha256', key).update(text).digest('hex');

async function sendOnce(transport: UpstreamTransport, request: UpstreamRequest): Promise<string | undefined> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { status, body } = await transport.send(request, signal);
    await body[Symbol.asyncIterator]().return?.();
    return status >= 200 && status < 300 ? undefined : `status_${status}`;
  } catch (error) {
    if (signal.aborted) return 'timeout';
    return error instanceof TransportError ? error.kind : 'failed';
  }
}

// SNS and SES: one POST each needs no SDK client. https://docs.aws.amazon.com/sns/latest/api/API_Publish.html,
// https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html

const connectTimeoutMs = 5_000;

function buildTopicRequest(topic: string, notice: Notice): UpstreamRequest {
  const region = topic.split(':')[3] ?? '';
  const form = new URLSearchParams({
    Action: 'Publish',
    Version: '2010-03-31',
    TopicArn: topic,
    Subject: formatSubject(notice),
    Message: formatText(notice),
    'MessageAttributes.entry.1.Name': 'type',
    'MessageAttributes.entry.1.Value.DataType': 'String',
    'MessageAttributes.entry.1.Value.StringValue': notice.type,
  });
  return {
    url: `https://sns.${region}.amazonaws.com/`,
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: form.toString(),
    connectTimeoutMs,
    awsScope: { service: 'sns', region },
  };
}

function buildMailRequest(
  { region, from, to }: Record<'region' | 'from' | 'to', string>,
  notice: Notice,
): UpstreamRequest {
  return {
    url: `https://email.${region}.amazonaws.com/v2/email/outbound-emails`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      FromEmailAddress: from,
      Destination: { ToAddresses: [to] },
      Content: {
        Simple: {
          Subject: encodeMailText(formatSubject(notice)),
          Body: { Text: encodeMailText(formatText(notice)) },
        },
      },
    }),
    connectTimeoutMs,
    awsScope: { service: 'ses', region },
  };
}

const encodeMailText = (Data: string) => ({ Data, Charset: 'UTF-8' });

// Text for people. A subject holds ASCII on one line.

const subjects: Record<Notice['type'], string> = {
  'balance.low': 'Balance is low',
  'plan.ending': 'Plan ends soon',
  'plan.ended': 'Plan has ended',
  'key.expiring': 'API key expires soon',
  'auto_top_up.off': 'Automatic top-up was turned off',
  'auto_top_up.limit': 'Automatic top-up reached its monthly limit',
  'upstream.balance_low': 'Upstream balance is low',
  'channel.failing': 'Channel fails more often',
  'channel.slower': 'Channel is slower',
  'channel.costlier': 'Channel costs more',
};

/** SNS takes at most 100 characters. */
const subjectLength = 100;

const formatSubject = ({ type, account, data }: Notice): string =>
  `${subjects[type]}: ${account ?? data['channel']}`.replace(/[^ -~]/g, '?').slice(0, subjectLength);

function formatText(notice: Notice): string {
  const { id, type, created, account, data } = notice;
  const facts = {
    ...(account !== undefined && { account }),
    ...data,
    type,
    id,
    created: new Date(created * 1000).toISOString(),
  };
  const lines = Object.entries(facts).map(([name, value]) => `${name}: ${value}`);
  return `${subjects[type]}.\n\n${lines.join('\n')}\n`;
}
