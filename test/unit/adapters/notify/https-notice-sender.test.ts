import { describe, expect, it } from 'vitest';
import { createNoticeSender } from '../../../../shared/adapters/transport/notice-sender.ts';
import type { Notice } from '../../../../shared/wire/public-api.ts';
import type { UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';

const notice: Notice = {
  id: 'n1',
  type: 'balance.low',
  created: 1_795_000_000,
  account: 'acmé',
  data: { balance: '4', alert_below: '5.5' },
};
const topic = 'arn:aws:sns:eu-west-1:123456789012:relay-alarms';

function rig(options: { topic?: string; sender?: string }, status = 200) {
  const requests: UpstreamRequest[] = [];
  const sender = createNoticeSender({
    ...options,
    region: 'eu-central-1',
    transport: {
      async send(request) {
        requests.push(request);
        return { status, headers: {}, body: (async function* () {})() };
      },
    },
    secrets: { read: async () => 'secret' },
    clock: { now: () => 0 },
  });
  return { sender, requests };
}

describe('a notice', () => {
  it('is published to the topic in its region, signed for SNS', async () => {
    const { sender, requests } = rig({ topic });
    expect(await sender.send({ kind: 'topic' }, notice)).toBeUndefined();
    expect(requests[0]).toMatchObject({
      url: 'https://sns.eu-west-1.amazonaws.com/',
      awsScope: { service: 'sns', region: 'eu-west-1' },
    });
    const form = Object.fromEntries(new URLSearchParams(requests[0]?.body));
    expect(form).toMatchObject({ Action: 'Publish', TopicArn: topic, Subject: 'Balance is low: acm?' });
    expect(form['Message']).toContain(
      'account: acmé\nbalance: 4\nalert_below: 5.5\ntype: balance.low\nid: n1\n',
    );
  });

  it('is mailed from the sender to one address, signed for SES', async () => {
    const { sender, requests } = rig({ sender: 'relay@example.com' });
    expect(await sender.send({ kind: 'mail', to: 'ops@acme.example.com' }, notice)).toBeUndefined();
    expect(requests[0]).toMatchObject({
      url: 'https://email.eu-central-1.amazonaws.com/v2/email/outbound-emails',
      awsScope: { service: 'ses', region: 'eu-central-1' },
    });
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({
      FromEmailAddress: 'relay@example.com',
      Destination: { ToAddresses: ['ops@acme.example.com'] },
      Content: { Simple: { Subject: { Data: 'Balance is low: acm?' } } },
    });
  });

  it('is not sent through a channel that the deployment lacks', async () => {
    const { sender, requests } = rig({});
    expect(sender.offers).toEqual({ topic: false, mail: false });
    expect(await sender.send({ kind: 'topic' }, notice)).toBe('no_topic');
    expect(await sender.send({ kind: 'mail', to: 'a@example.com' }, notice)).toBe('no_sender');
    expect(requests).toEqual([]);
  });
});
