/**
 * Fields that tenants may send in Messages, beta fields included, one line per source. Betas that bill, store or run
 * something elsewhere belong to the operator: `billing_policy`, `fallbacks`, `fallback_credit_token`, `diagnostics`,
 * `container`, `mcp_servers`, `compaction`, `inference_geo`. Blocks of content are open.
 */
import { parseFieldRules, prefixFields } from '../../restricted-fields.ts';

const breakpoint = 'cache_control.type cache_control.ttl cache_control.scope';

export const tenantFields = parseFieldRules([
  // [anthropic-sdk-typescript 1.12, MessageCreateParams and its beta, November 2026]
  'stop_sequences temperature top_p top_k',
  breakpoint,
  prefixFields('thinking', 'type budget_tokens display block_binding.prefix_mismatch_behavior'),
  prefixFields('output_config', 'effort format.type format.schema.*'),
  prefixFields('output_config.task_budget', 'type total remaining'),
  // Its name while it was a beta.
  prefixFields('output_format', 'type schema.*'),
  prefixFields('tool_choice', 'type name disable_parallel_tool_use'),
  // The ids of its answers are bound to the account.
  prefixFields('thread', 'type previous_message_id'),
  // The vendor's check is free of charge [code.claude.com, "Auto mode classifier request charges", November 2026].
  'safeguards.*',
  prefixFields('context_management.edits', 'type trigger.type trigger.value keep.* clear_tool_inputs'),
  prefixFields('context_management.edits', 'clear_at_least.type clear_at_least.value exclude_tools'),
  // Tools that the caller runs, those of the vendor's schema included.
  prefixFields('tools', `type name description input_schema.* input_examples.* strict ${breakpoint}`),
  prefixFields('tools', 'defer_loading eager_input_streaming allowed_callers max_characters enable_zoom'),
  prefixFields('tools', 'display_width_px display_height_px display_number'),
]);
