/**
 * Where Chat Completions upstreams report their counts, and the names that vendors have for them. A compatible server
 * may use any of these, so they are read by name and not by vendor.
 */
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { VendorCounts } from '../../usage-counts.ts';

/** The counts in an event: beside the choices, in the first choice (Moonshot) or under `x_groq`. Undefined: none. */
export function countsOfEvent(event: JsonRecord): VendorCounts | undefined {
  const [choice] = Array.isArray(event['choices']) ? event['choices'] : [];
  const places = [event['usage'], asRecord(choice)['usage'], asRecord(event['x_groq'])['usage']];
  const usage = places.find(isRecord);
  return usage && countsOf(usage);
}

function countsOf(usage: JsonRecord): VendorCounts {
  const inputDetails = asRecord(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = asRecord(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const lifetimes = asRecord(usage['cache_creation'] ?? inputDetails['cache_creation_token_details']);
  // Anthropic's names. Its own count of input leaves both out; gateways that add them keep the names.
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const isNamedSo = typeof (read ?? written) === 'number';
  return {
    input: usage['prompt_tokens'] ?? usage['input_tokens'],
    output: usage['completion_tokens'] ?? usage['output_tokens'],
    total: usage['total_tokens'],
    reasoning: outputDetails['reasoning_tokens'] ?? usage['reasoning_tokens'],
    cached:
      inputDetails['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'] ?? read,
    written:
      inputDetails['cache_write_tokens'] ??
      inputDetails['cache_creation_tokens'] ??
      usage['cache_write_tokens'] ??
      written,
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: isNamedSo && (usage['prompt_tokens'] === undefined || 'unsure'),
  };
}
