/** What tenants may send in Responses beside the fields that the relay reads itself: a line a source. */
import { parseFieldRules, prefixFields } from '../../field-rules.ts';

export const tenantFields = parseFieldRules([
  // OpenAI [openai-node 7.55, ResponseCreateParams, November 2026].
  'include max_tool_calls truncation image.context_compression',
  'prompt_cache_retention prompt_cache_options.mode prompt_cache_options.ttl',
  prefixFields('reasoning', 'effort summary generate_summary context'),
  // Open Responses [openresponses.org, April 2026].
  'presence_penalty frequency_penalty',
]);
