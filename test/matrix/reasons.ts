/**
 * Places whose loss is right, by rules. Whatever no rule has is carried, mended, named as dropped or refused, or the test
 * fails. A rule that nothing needs fails it too.
 */
import type { Dialect } from './endpoints.ts';

export interface Reason {
  /** Without it the rule holds for all. */
  endpoint?: Dialect;
  dialect?: Dialect;
  places: RegExp;
  why: string;
}

export const reasons: readonly Reason[] = [
  {
    places: /^(?:stream|stream_options\..*)$/,
    why: 'The relay reads every upstream as a stream and writes the answer as it was asked for.',
  },
  {
    places: /^(?:stop|stop_sequences)(?:\[\])?$/,
    why: 'The relay itself ends the text where the upstream has no such field.',
  },
  {
    places: /format\[text\]$|^tool_choice\[auto\]$|caller\[direct\]$/,
    why: 'It asks for what holds without it.',
  },
  {
    places: /^thinking\[(?:adaptive|between_tools)\]$|^(?:reasoning_effort|(?:.*\.)?reasoning\.effort)$/,
    why: 'The model decides whether it thinks where the form has no such word.',
  },
  {
    places:
      /^thinking\[\w+\]\.display$|^reasoning\.(?:summary|generate_summary|context)$|^include\[\]$|^store$/,
    why: 'The relay serves it: it shows and returns the reasoning, and stores the response if the key may.',
  },
  {
    places: /cache_control(?:\.ttl)?$/,
    why: 'Other vendors cache by themselves, and a cache changes no answer.',
  },
  {
    places: /\.(?:annotations|citations|logprobs)\[/,
    why: 'No model reads what an earlier answer had beside its text.',
  },
  {
    endpoint: 'messages',
    places: /source\[base64\]\.media_type$/,
    why: 'The bytes of a picture say its type.',
  },
  {
    dialect: 'messages',
    places: /json_schema\]?\.(?:name|strict)$/,
    why: 'The form of an answer is the schema alone there, and always strict.',
  },
  {
    endpoint: 'responses',
    places: /^input\[reasoning\](?:\.(?:summary|content)\b.*)?$/,
    why: 'A model reads only its encrypted content.',
  },
  {
    endpoint: 'responses',
    places: /\.(?:phase|async)$/,
    why: 'A phase orders what a client shows, and the tool of an asynchronous call says that it is one.',
  },
  {
    endpoint: 'responses',
    places: /output\]\.(?:name|namespace)$/,
    why: 'The call of the result has it.',
  },
  {
    endpoint: 'responses',
    places: /\.(?:id|status)$/,
    why: 'Ids and states of items are the relay’s own.',
  },
];

export const findReason = (
  list: readonly Reason[],
  at: { endpoint: Dialect; dialect: Dialect; path: string },
): Reason | undefined =>
  list.find(
    ({ endpoint = at.endpoint, dialect = at.dialect, places }) =>
      endpoint === at.endpoint && dialect === at.dialect && places.test(at.path),
  );

/** The same for places of answers. `dialect` is the upstream's, `endpoint` the client's. */
export const answerReasons: readonly Reason[] = [
  {
    places:
      /^(?:id|created|created_at|completed_at|metadata|moderation|system_fingerprint|output_text|service_tier|status)$|^output.*\.(?:id|status|created_by)$/,
    why: 'The answer is the relay’s own document, with its ids, times and states, and the tier that is charged.',
  },
  {
    dialect: 'responses',
    places:
      /^(?:access_programs|background|conversation|image|instructions|max_output_tokens|max_tool_calls|parallel_tool_calls|previous_response_id|prompt|prompt_cache_\w+|safety_identifier|temperature|tool_choice|tools|top_logprobs|top_p|truncation|user|reasoning|text)\b/,
    why: 'The relay repeats the request that its client sent.',
  },
  {
    places: /^usage\.(?!\w+\.(?:thinking|reasoning|cached)_tokens$)|^tool_usage|_usage$/,
    why: 'The client gets the counts that are charged, in the words of its form.',
  },
  {
    places: /^stop_reason$|^stop_sequence$|finish_reason$|^stop_details\.|^incomplete_details|^error\./,
    why: 'Each form has one word for an end or a failure, and only Messages says more about it.',
  },
  {
    places:
      /^content\[(?:\w+_tool_result|server_tool_use|mcp_\w+|container_upload|fallback|compaction)\]|^container|^context_management|^diagnostics|^input_transformations/,
    why: 'What the vendor ran beside the answer. Its text and its sources go down.',
  },
  {
    places:
      /^output\[(?:additional_tools|agent_message|apply_patch_\w+|code_interpreter_call|computer_\w+|custom_tool_call_output|file_search_call|function_call_output|image_generation_call|local_shell_\w+|mcp_\w+|multi_agent_\w+|program|program_output|shell_\w+|tool_search_\w+|web_search_call|compaction)\]/,
    why: 'What the vendor ran beside the answer. Its text and its sources go down.',
  },
  {
    places: /\.(?:agent|async|caller|namespace|toolset_name)\b/,
    why: 'It belongs to tools that the client did not declare, or it is in their declaration.',
  },
  {
    places:
      /citations\[(?:char|page|content_block|search_result)_location\]|citations\[web_search_result_location\]\.|annotations\[(?:file|container)_\w+\]|annotations.*(?:start|end)_index$/,
    why: 'The client’s form cites pages of the web alone, by their place in the text or by their words.',
  },
  {
    places: /custom\.(?:input|name)$|custom_tool_call\]\.input$|logprobs|\.phase$/,
    why: 'The form has no such thing, so its client cannot ask for it.',
  },
  {
    places: /redacted_thinking|\.signature$|encrypted_content$|choices\[\]\.index$|message\.audio/,
    why: 'State that the relay keeps for the next turn, other choices and sound, of which the form has none.',
  },
];
