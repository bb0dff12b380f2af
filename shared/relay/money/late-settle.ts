/**
 * A close that came after its reservation expired: charges the difference to what the expiry charged, once. Must never
 * charge what an earlier try of the same close may have charged.
 */
import { expiryCharge } from '../../billing/close-expired.ts';
import { lateRow } from '../../billing/ledger-row.ts';
import type { CloseKind } from '../../billing/quota-item.ts';
import type { CloseWrite } from '../../billing/quota-writes.ts';
import type { Backoff } from './backoff.ts';
import type { ReservationsPorts } from './open-reservation.ts';

/** The ledger has the row of a close some seconds after it. */
const rowPauseMs = 1_000;
const rowTriesMax = 5;

/** @param backoff of the close: an unknown outcome means that one of its tries may have been applied */
export async function settleLate(
  ports: ReservationsPorts,
  write: CloseWrite,
  backoff: Backoff,
): Promise<void> {
  const { quotas, log } = ports;
  const unsure = backoff.unknowns > 0;
  const kind = unsure ? await closedAs(ports, write, backoff) : 'expired';
  if (kind === undefined || kind === 'cancelled')
    return log.event('settle_late', { ...lossOf(write), unsure: true });
  if (kind !== 'expired') return;
  const difference = write.closeRecord.charge - expiryCharge(write.entry);
  if (difference !== 0n) {
    const row = lateRow(write, difference);
    await backoff.until(() => quotas.chargeLate({ difference, row }));
  }
  log.event('settle_late', { ...lossOf(write), difference_nano: String(difference) });
}

async function closedAs(
  { quotas, clock }: ReservationsPorts,
  { account, id }: CloseWrite,
  backoff: Backoff,
): Promise<CloseKind | undefined> {
  for (let tries = 0; tries < rowTriesMax; tries += 1) {
    const kind = await backoff.until(() => quotas.closedAs(account, id));
    if (kind !== undefined) return kind;
    await clock.sleep(rowPauseMs);
  }
  return undefined;
}

/** A close as the fields of a log line, from which `ops audit --repair` can write it again. Amounts in nano-yuan. */
export const lossOf = ({
  account,
  part,
  id,
  releaseSlot,
  closeRecord,
}: CloseWrite): Record<string, unknown> => ({
  request_id: id,
  account,
  part: part === 0 ? undefined : part,
  give_back: releaseSlot,
  kind: closeRecord.kind,
  charge_nano: String(closeRecord.charge),
  at: closeRecord.at,
  endpoint: closeRecord.endpoint,
  prompt_tokens: closeRecord.promptTokens,
  completion_tokens: closeRecord.completionTokens,
  ...closeRecord.cache,
  estimated: closeRecord.estimated,
  end: closeRecord.end,
  cost_nano: closeRecord.cost === undefined ? undefined : String(closeRecord.cost),
  channel: closeRecord.channel,
  upstream_model: closeRecord.upstreamModel,
  first_content_ms: closeRecord.firstContentMs,
  bought_nano: closeRecord.bought === undefined ? undefined : String(closeRecord.bought),
  flag: closeRecord.flag,
  price: closeRecord.price,
  model: closeRecord.model,
  alias: closeRecord.alias,
});
