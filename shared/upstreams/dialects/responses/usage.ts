/** The names of the counts in a response. Source: `ResponseUsage` of OpenAI's API description. */
import { asRecord, isRecord } from '../../../wire/json-record.ts';
import type { VendorCounts } from '../../usage-counts.ts';

/** Input counts what was read from and written to the cache, output counts reasoning. */
export function countsOf(usage: unknown): VendorCounts | undefined {
  if (!isRecord(usage)) return undefined;
  const details = asRecord(usage['input_tokens_details']);
  return {
    input: usage['input_tokens'],
    output: usage['output_tokens'],
    total: usage['total_tokens'],
    reasoning: asRecord(usage['output_tokens_details'])['reasoning_tokens'],
    cached: details['cached_tokens'],
    written: details['cache_write_tokens'],
  };
}
