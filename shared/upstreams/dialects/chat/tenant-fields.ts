/**
 * Fields that tenants may send in Chat Completions beside those that the relay reads itself (`ChatRequest`), one line
 * per source. Never fields that cost, route, name stored data, run code (`chat_template`), or make an answer longer
 * than its count of tokens.
 */
import { parseFieldRules, prefixFields } from '../../restricted-fields.ts';

export const tenantFields = parseFieldRules([
  // OpenAI [openai-node 7.55, ChatCompletionCreateParams, November 2026].
  'logit_bias.* prompt_cache_retention prompt_cache_options.mode prompt_cache_options.ttl store',
  // Gemini [ai.google.dev/gemini-api/docs/openai, November 2026].
  prefixFields('extra_body.google.thinking_config', 'thinking_budget thinking_level include_thoughts'),
  // vLLM [vllm/entrypoints/openai/chat_completion/protocol.py, November 2026], whose older versions have `guided_*`.
  'min_p length_penalty stop_token_ids include_stop_str_in_output ignore_eos min_tokens skip_special_tokens',
  'spaces_between_special_tokens truncate_prompt_tokens truncation_side allowed_token_ids bad_words',
  'thinking_token_budget include_reasoning add_generation_prompt continue_final_message add_special_tokens',
  'documents.* return_tokens_as_token_ids structural_tag guided_json.* guided_regex guided_choice guided_grammar',
  'guided_whitespace_pattern repetition_detection.*',
  prefixFields(
    'structured_outputs',
    'json.* regex choice grammar json_object structural_tag whitespace_pattern',
  ),
  // Variables of chat templates: Qwen, DeepSeek, GLM, Kimi, Granite, gpt-oss, Nemotron [their model cards, November 2026].
  prefixFields(
    'chat_template_kwargs',
    'enable_thinking thinking thinking_budget thinking_token_budget low_effort',
  ),
  prefixFields('chat_template_kwargs', 'reasoning_budget reasoning_effort clear_thinking preserve_thinking'),
  prefixFields('chat_template_kwargs', 'add_vision_id model_identity date_string truncate_history_thinking'),
  // SGLang [python/sglang/srt/entrypoints/openai/protocol.py, November 2026].
  'regex ebnf stop_regex no_stop_trim separate_reasoning stream_reasoning',
  // llama.cpp [tools/server/README.md, November 2026].
  'dynatemp_range dynatemp_exponent typical_p top_n_sigma repeat_penalty repeat_last_n xtc_probability',
  'xtc_threshold dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers mirostat',
  'mirostat_tau mirostat_eta min_keep samplers grammar grammar_lazy json_schema.* reasoning_format reasoning_budget',
  // Ollama [docs.ollama.com/api/openai-compatibility, /modelfile, October 2026], whose options servers in front of it take.
  'think reasoning.effort',
  prefixFields('options', 'temperature top_k top_p min_p typical_p seed stop repeat_last_n repeat_penalty'),
  prefixFields('options', 'mirostat mirostat_eta mirostat_tau presence_penalty frequency_penalty'),
  // LM Studio [lmstudio.ai/docs/developer/openai-compat/chat-completions, April 2026] has `top_k`, `repeat_penalty`, `logit_bias`.
  // DeepSeek, Kimi, GLM, Doubao [api-docs.deepseek.com, platform.kimi.ai, docs.z.ai, November 2026].
  prefixFields('thinking', 'type budget_tokens reasoning_effort clear_thinking keep'),
  // Qwen [help.aliyun.com/model-studio], MiniMax, Mistral, Groq, Cerebras [their API references, November 2026].
  'enable_thinking thinking_budget preserve_thinking reasoning_split safe_prompt random_seed prompt_mode',
  'clear_thinking disable_reasoning user_id do_sample tool_stream',
  // OpenRouter [openrouter.ai/docs/api-reference/parameters, November 2026].
  prefixFields('reasoning', 'max_tokens exclude enabled summary'),
  'top_a usage.include',
]);
