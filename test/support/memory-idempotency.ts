import type {
  ClaimReply,
  IdempotencyClaimWrite,
  IdempotencyStore,
} from '../../shared/relay/ports/runtime-stores.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';

const keptMs = 24 * 60 * 60 * 1000;

/** The idempotency store in memory; it passes the same contract as the DynamoDB adapter. */
export class MemoryIdempotency implements IdempotencyStore {
  /** The kinds of the ledger's rows, by account and request id. */
  readonly closed = new Map<string, string>();
  readonly #clock: Clock;
  readonly #rows = new Map<
    string,
    IdempotencyClaimWrite & { state: 'running' | 'completed'; atMs: number }
  >();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async claim(claim: IdempotencyClaimWrite): Promise<ClaimReply> {
    const key = `${claim.owner}\n${claim.idempotencyKey}`;
    const nowMs = this.#clock.now();
    const row = this.#rows.get(key);
    const closed = row && this.closed.get(`${claim.account} ${row.requestId}`);
    const crashed = row?.state === 'running' && closed !== undefined && closed !== 'settled';
    const dead =
      row &&
      (crashed ||
        row.atMs + keptMs < nowMs ||
        (row.state === 'running' && closed !== 'settled' && row.untilMs < nowMs));
    if (row && !dead && row.requestId !== claim.requestId) {
      const same = JSON.stringify(row.body) === JSON.stringify(claim.body);
      const state = closed === 'settled' ? 'completed' : row.state;
      if (same) return { state, requestId: row.requestId };
      const differs = row.namesMembers && claim.namesMembers ? firstDifference(row, claim) : undefined;
      return { state: 'other_body', requestId: row.requestId, ...(differs !== undefined && { differs }) };
    }
    this.#rows.set(key, { ...claim, state: 'running', atMs: nowMs });
    return { state: 'claimed' };
  }

  async finish(claim: IdempotencyClaimWrite, free: boolean): Promise<void> {
    const key = `${claim.owner}\n${claim.idempotencyKey}`;
    const row = this.#rows.get(key);
    if (row?.requestId !== claim.requestId) return;
    if (free) this.#rows.delete(key);
    else row.state = 'completed';
  }
}

function firstDifference(...claims: IdempotencyClaimWrite[]): string | undefined {
  const sent = claims.map(({ body }) => (Array.isArray(body) ? (body.at(-1) as object) : {}));
  const texts = sent.map((each) =>
    Object.fromEntries(Object.entries(each).map(([name, value]) => [name, JSON.stringify(value)])),
  );
  const names = Object.keys(Object.assign({}, ...texts)).toSorted();
  return names.find((name) => texts[0]?.[name] !== texts[1]?.[name]);
}
