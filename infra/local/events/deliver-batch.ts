import type { StreamRecord } from './table-stream-record.ts';

export interface DeliveryPolicy {
  /** -1: no limit. */
  retriesMax: number;
  bisectOnError: boolean;
  reportsItemFailures: boolean;
}

export interface Delivery {
  policy: DeliveryPolicy;
  /** Calls the function; rejects when it fails. */
  invoke(records: StreamRecord[]): Promise<unknown>;
  /** Waits before the next try; resolves to false when delivery must stop. */
  pause(attempt: number): Promise<boolean>;
  /** Called for records without retries left. */
  discard(records: StreamRecord[], reason: string): void;
}

/**
 * Delivers one batch like an event source mapping. A failed batch is retried, halved if the policy wants
 * that, and discarded after its retries. Records before a reported item failure count as done. Halving uses
 * no retry. Resolves when every record is processed or discarded, or when `pause` resolves to false.
 */
export async function deliverBatch(delivery: Delivery, records: StreamRecord[]): Promise<void> {
  const { policy } = delivery;
  let rest = records;
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await tryOnce(delivery, rest);
    if (outcome.failedFrom === undefined) return;
    const progressed = outcome.failedFrom > 0;
    rest = rest.slice(outcome.failedFrom);
    if (policy.bisectOnError && (progressed || rest.length > 1)) {
      if (!(await delivery.pause(attempt))) return;
      const middle = progressed ? rest.length : Math.ceil(rest.length / 2);
      await deliverBatch(delivery, rest.slice(0, middle));
      if (middle < rest.length) await deliverBatch(delivery, rest.slice(middle));
      return;
    }
    if (policy.retriesMax >= 0 && attempt > policy.retriesMax) return delivery.discard(rest, outcome.reason);
    if (!(await delivery.pause(attempt))) return;
  }
}

interface Outcome {
  /** Index of the first record that is not done; undefined when all are. */
  failedFrom?: number;
  reason: string;
}

async function tryOnce(delivery: Delivery, records: StreamRecord[]): Promise<Outcome> {
  try {
    const answer = await delivery.invoke(records);
    if (!delivery.policy.reportsItemFailures) return { reason: '' };
    return reportedFailure(answer, records);
  } catch (error) {
    return { failedFrom: 0, reason: (error as Error).message };
  }
}

function reportedFailure(answer: unknown, records: StreamRecord[]): Outcome {
  const failures =
    (answer as { batchItemFailures?: { itemIdentifier?: string }[] } | null)?.batchItemFailures ?? [];
  if (failures.length === 0) return { reason: '' };
  const reason = 'the function reported item failures';
  const positions = failures.map(({ itemIdentifier }) =>
    records.findIndex((record) => record.dynamodb.SequenceNumber === itemIdentifier),
  );
  // An identifier that is not in the batch fails the whole batch, as on AWS.
  return { failedFrom: Math.max(0, Math.min(...positions)), reason };
}
