/** View: how much an account has stored, without reading any of it. */
import type { OperatorPorts } from '../operator-ports.ts';
import { findAccount } from '../find-account.ts';
import type { StoredRow } from '../response-rows.ts';

export const storedKinds = ['responses', 'events', 'results'] as const;
export type StoredKind = (typeof storedKinds)[number];

/** Of what has not expired. */
export interface StoredSum {
  count: number;
  bytes: number;
}

export interface AccountResponses {
  account: string;
  /** Of events, the count is that of batches. */
  sums: Record<StoredKind, StoredSum>;
  /** Items that have expired and that DynamoDB has not removed yet. */
  expired: number;
  /** Unix seconds: when the last of it expires. Undefined: nothing is stored. */
  lastExpires: number | undefined;
}

export async function accountResponses(
  ports: OperatorPorts,
  account: string,
  onProgress: (items: number) => void,
): Promise<AccountResponses> {
  await findAccount(ports, account);
  const now = Math.floor(ports.clock.now() / 1000);
  const sums = { responses: none(), events: none(), results: none() };
  let expired = 0;
  let lastExpires: number | undefined;
  for await (const rows of ports.responses.rows(account)) {
    for (const row of rows) {
      const kind = kindOf(row);
      if (row.expires <= now) expired += 1;
      else if (kind) {
        sums[kind].count += 1;
        sums[kind].bytes += row.bytes;
        lastExpires = Math.max(lastExpires ?? 0, row.expires);
      }
    }
    onProgress(rows.length);
  }
  return { account, sums, expired, lastExpires };
}

const forms: Record<StoredKind, RegExp> = {
  responses: /^resp-[^#]+$/,
  events: /^resp-[^#]+#e#\d+$/,
  results: /^resp-[^#]+#result$/,
};

const none = (): StoredSum => ({ count: 0, bytes: 0 });
/** Undefined: a further part of one of these, whose bytes it has counted. */
const kindOf = ({ id }: StoredRow): StoredKind | undefined =>
  storedKinds.find((kind) => forms[kind].test(id));
