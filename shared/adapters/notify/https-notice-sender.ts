/** Sends notices to what a deployment offers: its topic, mail from its sender, and signed webhooks. */
import type { NoticeSender } from '../../relay/ports/alerts/notice-sender.ts';
import { mailRequest, publishRequest } from './aws-requests.ts';
import { postNotice, sent, type WebhookParts } from './webhook-sender.ts';

export interface NoticeSenderParts extends WebhookParts {
  region: string;
  /** The ARN of the stack's topic; absent: it has none. */
  topic?: string | undefined;
  /** The verified address that mail to customers comes from; absent: none is sent. */
  sender?: string | undefined;
}

export function httpsNoticeSender({ topic, sender, region, ...parts }: NoticeSenderParts): NoticeSender {
  return {
    offers: { topic: topic !== undefined, mail: sender !== undefined },
    async send(target, notice) {
      if (target.kind === 'webhook') return postNotice(parts, target, notice);
      if (target.kind === 'topic')
        return topic === undefined ? 'no_topic' : sent(parts.transport, publishRequest(topic, notice));
      if (sender === undefined) return 'no_sender';
      return sent(parts.transport, mailRequest({ region, from: sender, to: target.to }, notice));
    },
  };
}
