/** A close as the fields of a log line, from which `ops audit --repair` can write it again. */
import type { CloseWrite } from '../../billing/quota-writes.ts';

/** Amounts in nano-yuan. */
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
});
