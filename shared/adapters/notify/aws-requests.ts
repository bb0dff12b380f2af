/**
 * Requests to Amazon SNS and SES, one call each, signed with the function's own role: no SDK client is needed for one
 * POST. https://docs.aws.amazon.com/sns/latest/api/API_Publish.html,
 * https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html
 */
import type { Notice } from '../../wire/public/notice.ts';
import type { UpstreamRequest } from '../../upstreams/exchange.ts';
import { noticeSubject, noticeText } from './notice-text.ts';

const connectTimeoutMs = 5_000;

/** @param topic its ARN, which names the region */
export function publishRequest(topic: string, notice: Notice): UpstreamRequest {
  const region = topic.split(':')[3] ?? '';
  const form = new URLSearchParams({
    Action: 'Publish',
    Version: '2010-03-31',
    TopicArn: topic,
    Subject: noticeSubject(notice),
    Message: noticeText(notice),
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

export interface Mail {
  region: string;
  /** A verified identity. */
  from: string;
  to: string;
}

export function mailRequest({ region, from, to }: Mail, notice: Notice): UpstreamRequest {
  return {
    url: `https://email.${region}.amazonaws.com/v2/email/outbound-emails`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      FromEmailAddress: from,
      Destination: { ToAddresses: [to] },
      Content: {
        Simple: { Subject: part(noticeSubject(notice)), Body: { Text: part(noticeText(notice)) } },
      },
    }),
    connectTimeoutMs,
    awsScope: { service: 'ses', region },
  };
}

const part = (Data: string) => ({ Data, Charset: 'UTF-8' });
