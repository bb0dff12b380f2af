import { createHash } from 'node:crypto';
import type { ResponseHead, StoredResponse, StoredPorts } from '../../shared/relay/ports/stored.ts';
import type { VirtualClock } from '../support/virtual-clock.ts';

export interface OpenedStored extends AsyncDisposable {
  stored: Omit<StoredPorts, 'startRun'>;
  clock: VirtualClock;
}

export interface StoredSuite {
  name: string;
  open: () => Promise<OpenedStored>;
}

export const nowOf = ({ clock }: Pick<OpenedStored, 'clock'>): number => Math.floor(clock.now() / 1000);

/** A response of an account; a test names only the fields that matter. */
export function responseOf(
  opened: Pick<OpenedStored, 'clock'>,
  head: Partial<ResponseHead> & { account: string; id: string },
  body: Partial<StoredResponse['body']> = {},
): StoredResponse {
  const now = nowOf(opened);
  return {
    head: {
      status: 'completed',
      createdAt: now,
      expires: now + 3600,
      ancestors: [],
      turn: 1,
      conversationLength: 10,
      ...head,
    },
    body: { input: [{ type: 'message' }], response: { id: head.id, object: 'response' }, ...body },
  };
}

/** A queued response that a run may claim. */
export const queuedOf = (
  opened: Pick<OpenedStored, 'clock'>,
  of: { account: string; id: string },
  body: Partial<StoredResponse['body']> = { request: { model: 'm' } },
): StoredResponse =>
  responseOf(
    opened,
    { ...of, status: 'queued', background: { streamed: true, until: nowOf(opened) + 60 } },
    body,
  );

/** A text that compresses by at most a quarter, the same each time. An item has room for 400,000 characters of it. */
export const noise = (length: number, seed = 1): string =>
  createHash('shake256', { outputLength: Math.ceil((length * 3) / 4) })
    .update(String(seed))
    .digest('base64')
    .slice(0, length);
