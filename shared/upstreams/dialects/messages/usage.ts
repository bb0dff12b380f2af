/** The names of the counts in a Messages answer, whose events each have some of them. */
import { asRecord, isRecord } from '../../../wire/json-record.ts';
import type { VendorCounts } from '../../usage-counts.ts';

/** `message_start` has the input, `message_delta` the output and often the input again. */
export function countsOf(usage: unknown): VendorCounts | undefined {
  if (!isRecord(usage)) return undefined;
  const lifetimes = asRecord(usage['cache_creation']);
  return {
    input: usage['input_tokens'],
    output: usage['output_tokens'],
    reasoning: asRecord(usage['output_tokens_details'])['thinking_tokens'],
    cached: usage['cache_read_input_tokens'],
    written: usage['cache_creation_input_tokens'],
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: true,
  };
}
