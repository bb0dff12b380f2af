/**
 * The vocabulary of vendors: finish reasons, and the words and sentences of errors, each line with its source. The first line
 * that matches counts. A channel's row can add lines, which come first (`params.words`). Unknown words are counted and reported
 * as a warning of the row. A sentence must never decide about our account if the caller could have written it.
 */
import type { FinishReason } from '../wire/chat-response.ts';
import { fitsPattern } from '../wire/ids.ts';
import { textIn } from '../wire/json.ts';
import type { UpstreamError } from './exchange.ts';

export const finishMeanings = ['stop', 'tool_calls', 'length', 'content_filter', 'failed'] as const;
export type FinishMeaning = FinishReason | 'failed';
/** `unknown`: a word that the vocabulary lacks. */
export type FinishReading = FinishMeaning | 'unknown';
/** `account`: our account is empty or refused. `failed`: the channel is at fault. `caller`: the request is at fault. */
export const errorMeanings = ['too_long', 'account', 'rate_limit', 'overloaded', 'failed', 'caller'] as const;

/** A row's own lines. A pattern is a word, or a text in which `*` stands for any text. */
export interface Words {
  finish?: Record<string, FinishMeaning> | undefined;
  errors?: Record<string, (typeof errorMeanings)[number]> | undefined;
}

/** The status that an error stands for, or a meaning without a status. */
type ErrorMeaning = number | 'too_long' | 'account' | 'failed';
type Line<Meaning> = readonly [pattern: RegExp, means: Meaning];

/** Words are compared in snake case, so `MAX_TOKENS`, `maxTokens` and `max-tokens` are the same. */
const finishLines: readonly Line<FinishMeaning>[] = [
  // OpenAI, Anthropic ["Handling stop reasons", November 2026], Cohere v2, Together and text-generation-inference (`eos`).
  // `pause_turn` is an end, too: a client cannot continue it.
  [
    /^(?:stop|end_turn|(?:stop|end)_sequence|eo[gs](?:_token|_found)?|end(?:_?of_?(?:text|turn))?|stop_trigger|completed?|done|finished|pause_turn|compaction)$/,
    'stop',
  ],
  [/^(?:tool_(?:calls?|use)|function_calls?)$/, 'tool_calls'],
  // Z.ai (`sensitive`) [mozilla-ai/any-llm 1204, 2026-07-26], Gemini [ai.google.dev, `FinishReason`], Vertex (`MODEL_ARMOR`), Bedrock
  // (`guardrail_intervened`, `content_filtered`) [AWS, `StopReason`], Cohere (`ERROR_TOXIC`)
  [
    /(?:^|_)(?:filter(?:ed)?|violations?|armor|safety|guardrails?|moderat\w+|block(?:ed|list)|prohibited|sensitive|recitation|spii|toxic|refus(?:al|ed)|policy)(?:_|$)|^(?:unsupported_)?language$/,
    'content_filter',
  ],
  // Mistral (`model_length`), Z.ai and Anthropic (`model_context_window_exceeded`), Responses (`max_output_tokens`), Cohere
  // (`ERROR_LIMIT`), watsonx (`time_limit`), vLLM, which ends a loop (`repetition`) [BerriAI/litellm 27101, 2026-05-04]
  [
    /(?:^|_)(?:length|max(?:imum)?_(?:\w+_)?(?:tokens?|calls|requests|turns)|context|token_limit|time_limit|repetition)(?:_|$)|^error_limit$/,
    'length',
  ],
  // Z.ai (`network_error`), DeepSeek (`insufficient_system_resource`) [api-docs.deepseek.com, "Create chat completion"], vLLM
  // and SGLang (`abort`) [vllm-project/vllm 57082, 2026-09-15], Gemini (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`,
  // `TOO_MANY_TOOL_CALLS`, `MISSING_THOUGHT_SIGNATURE`, `NO_IMAGE`), Bedrock (`malformed_model_output`), Cohere (`USER_CANCEL`)
  [
    /(?:^|_)(?:errors?|fail(?:ed|ure)?|abort(?:ed)?|cancel(?:l?ed)?|time_?out|timed_out|interrupted|exception|resources?|overloaded|unavailable|disconnect\w*|malformed|unexpected|too_many|missing|no_image|rate_limit\w*|(?:un)?load(?:ed)?)(?:_|$)/,
    'failed',
  ],
];

const errorLines: readonly Line<ErrorMeaning>[] = [
  // llama.cpp (`exceed_context_size_error`), Copilot (`model_max_prompt_tokens_exceeded`), Baidu (`characters_too_long`)
  // [cloud.baidu.com, "错误码"], Z.ai (1261), Cloudflare (5021)
  [
    /(?:^|_)(?:context|prompt|input_(?:tokens?|length))_(?:\w+_)?(?:exceeded|too_long|overflow)(?:_|$)|^exceed_context_|^(?:tokens|characters)_too_long$|^(?:1261|5021)$/,
    'too_long',
  ],
  // OpenAI, Anthropic (`billing_error`), Groq (`organization_restricted`), Novita (`NOT_ENOUGH_BALANCE`), Kimi
  // (`exceeded_current_quota_error`), DashScope (`Arrearage`), Volcengine (`AccountOverdueError`), Google (`BILLING_DISABLED`).
  // Numbers of Z.ai [docs.bigmodel.cn, "api-code"], including quotas of days and weeks, for which no client can wait; of MiniMax
  // (1008, 2056) [platform.minimax.io, "Error Codes"], Cloudflare (3036) and SiliconFlow (30001)
  [
    /(?:^|_)(?:arrear(?:s|age)?|overdue|(?:insufficient|not_enough)_(?:\w+_)?(?:quota|balance|credits?|funds)|(?:credits?|balance)_(?:exhausted|insufficient|too_low|not_enough)|exceeded_current_quota|payment_required|billing(?:_\w+)?|free_tier_only|(?:account|organization)_(?:deactivated|suspended|disabled|blocked|inactive|restricted)|(?:consumer|key)_suspended|invalid_subscription)(?:_|$)/,
    'account',
  ],
  [/^(?:111[0-3]|1121|13(?:04|08|09|10)|1008|2056|3036|30001)$/, 'account'],
  // Google [`google.rpc.ErrorInfo`], DashScope (`InvalidApiKey`), Kimi (`invalid_authentication_error`), MiniMax (1004, 2049)
  [
    /^(?:(?:invalid_)?authentication(?:_error)?|(?:invalid|incorrect|wrong)_api_?key(?:_error)?|api_key_(?:invalid|not_valid|expired|revoked|disabled|\w*blocked)|unauthenticated|unauthorized|unrecognized_client|access_token_expired|consumer_invalid|service_disabled|100[34]|2049|10000)$/,
    401,
  ],
  // DashScope (`Model.AccessDenied`), Volcengine (`ModelNotOpen`), Z.ai (1220, 1311)
  [
    /^(?:permission_(?:error|denied(?:_error)?)|(?:\w+_)?access_denied(?:_\w+)?|unsupported_country_region_territory|model_not_open|1220|1311)$/,
    403,
  ],
  // Kimi (`rate_limit_reached_error`), DashScope (`Throttling.RateQuota`), AWS, Z.ai (1302, 1303, 1305), MiniMax (1002, 1039, 1041)
  [
    /(?:^|_)(?:rate_limit\w*|throttl(?:ing|ed)|too_many_requests|resource_exhausted|quota_exceeded|request_limit_exceeded)(?:_|$)|^(?:130[235]|1002|1039|1041)$/,
    429,
  ],
  [/^(?:service_unavailable|unavailable|slow_down)$/, 503],
  [/^(?:(?:engine|server|model)_)?overloaded(?:_error)?$|^(?:1312|3040)$/, 529],
  // Azure, AWS and Volcengine: the row names a deployment or a model that does not exist
  [/^(?:deployment_not_found|resource_not_found|invalid_endpoint_closed_endpoint)$/, 'failed'],
  [/^(?:server_error|api_error|internal|internal_error|internal_server_error|internal_server)$/, 500],
  [/^(?:request_too_large|image_too_large|image_file_too_large)$/, 413],
  // Z.ai (1301) and MiniMax (1026, 1027) find the content sensitive
  [
    /^(?:\w*policy_violation|content_policy|content_filter|data_inspection_failed|1301|1026|1027)$|(?:risk|sensitive\w*)_detect/,
    400,
  ],
  [/^(?:invalid_(?:image|base64)|unsupported_|missing_required_)\w*$/, 400],
  [/^image_(?:too_small|parse_error|file_not_found)$|^(?:empty_image_file|failed_to_download_image)$/, 400],
];
/** These count last, because a status in another field is more specific. */
const genericLines: readonly Line<ErrorMeaning>[] = [
  [
    /^(?:invalid_(?:request(?:_error)?|argument|prompt|value|type)|(?:invalid|missing)_parameter(?:_error)?|validation|bad_request(?:_error)?)$/,
    400,
  ],
];

/** Sentences about our account, at the beginning of an error whose words have no line. */
const accountSentences: readonly Line<ErrorMeaning>[] = [
  // Anthropic [openclaw/openclaw 65041, 2026-04-11], OpenRouter [danielsmithdevelopment/ClawQL 876, 2026-08-08] and others
  [/\bcredit balance is too low\b|\binsufficient (?:account )?(?:balance|credits?|funds)\b/i, 'account'],
  [/\bkey (?:budget )?limit exceeded\b|\brequires? more credits\b/i, 'account'],
  // xAI [continuedev/continue 10373, 2026-02-09; openclaw/openclaw 115871, 2026-07-29]
  [
    /\b(?:used all available|run out of|out of (?:usage )?) ?credits\b|\breached its monthly spending limit\b/i,
    'account',
  ],
  // DashScope ["Error codes"], Fireworks, Z.ai
  [
    /\baccount is (?:not )?in (?:good standing|arrears)\b|\baccount \S+ is suspended\b|欠费|余额不足/i,
    'account',
  ],
  // Anthropic [anthropics/claude-code 38035, 2026-03-24; 8327, 2026-01-09]
  [/\breached your specified (?:\w+ )?usage limits\b|\borganization has been disabled\b/i, 'account'],
  // Google refuses our region, and AWS a model id that needs an inference profile [cline/cline 689, 2024-11-05]
  [/\buser location is not supported\b/i, 403],
  [/\bon-demand throughput isn.t supported\b/i, 'failed'],
  // xAI refuses a wrong key with a 400 [continuedev/continue 10778, 2026-02-24]; Google without details
  [/\b(?:incorrect|invalid) api[ _-]?key\b|\bapi key (?:not valid|is invalid|expired)\b/i, 401],
];
/** Only this much of an error is searched for them, because a later sentence may be a quotation. */
const beginMax = 120;

/** Sentences about a prompt that is longer than the model's context. */
const tooLongSentences: readonly RegExp[] = [
  // OpenAI, vLLM, xAI ("maximum prompt length is"), Poolside [earendil-works/pi 4943, 2026-05-24], Mistral, Baidu, SambaNova
  // [cline/cline 294, 2024-09-13]
  /\bmax(?:imum)? (?:(?:allowed|supported) )?(?:context|prompt|input|sequence|model) (?:length|size|window|tokens?|characters)\b/i,
  // Anthropic, Bedrock, vLLM ("decoder prompt"), Together and SGLang ("longer than the model's context length"), Ollama
  /\b(?:prompt|input|context|conversation)\b(?:(?!\b(?:image|audio|video|file|name|description|header|schema|key|id|url)\b)[^.]){0,60}\b(?:too long|longer than)\b/i,
  // OpenAI, llama.cpp, Anthropic, Cloudflare; MiniMax the other way round
  /\bexceed(?:s|ed|ing)?\b[^.]{0,40}\bcontext(?: (?:length|window|size|limit)|\b)/i,
  /\bcontext (?:length|window|size|limit)s?\b[^.]{0,30}\b(?:exceed|overflow)/i,
  // Gemini, SiliconFlow [chatboxai/chatbox 2060, 2025-02-25], Copilot [microsoft/vscode 289219, 2026-01-20], DashScope ("Range of input length should be [1, 129024]"), Cohere
  /\b(?:prompt|input)[ _](?:tokens?|length)\b[^.]{0,80}\b(?:exceed|more than|greater than|supports? up to|(?:must|should) be (?:\[|<|less|at most))/i,
  /\b(?:input|total tokens(?: of [\w ]{1,20})?) exceeds? (?:the )?(?:max|model)|\btokens in (?:the|your) (?:prompt|input) cannot exceed\b/i,
  // Kimi [openclaw/openclaw 9562, 2026-02-05]; Z.ai [anomalyco/opencode 35920, 2026-07-08]
  /\bexceeded model token limit\b|\btokens in (?:the )?request more than max tokens\b/i,
  // LM Studio; Groq and Cerebras [cline/cline 5140, 2025-07-24]
  /\bgreater than the context length\b|\breduce the length of (?:the|your) (?:messages|input|prompt)\b/i,
  // text-generation-inference
  /`inputs` tokens \+ `max_new_tokens` must be|\bmust have less than \d+ tokens\b/i,
  /\bexceeds the maximum number of (?:input )?tokens\b|\btoo many (?:input|prompt) tokens\b/i,
  /(?:prompt|上下文|输入|提示词).{0,12}(?:超长|过长|超过|超出)|(?:超过|超出).{0,12}上下文/i,
];
const messageLengthMax = 8 * 1024;

// Looks words and sentences up.

const wordLengthMax = 64;

/** Returns an empty text for a value that is not a word. */
function normalizeWord(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const text = String(value);
  if (text.length > wordLengthMax) return '';
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$|_exception$|^finish_reason_/g, '');
}

/** Returns the meaning of the first word that has a line. */
function readWords<Meaning>(said: readonly string[], lines: readonly Line<Meaning>[]): Meaning | undefined {
  for (const word of said) {
    const line = lines.find(([pattern]) => pattern.test(word));
    if (line) return line[1];
  }
  return undefined;
}

const fitsWord = (pattern: string, word: string): boolean =>
  word !== '' && fitsPattern(pattern.split('*').map(normalizeWord).join('*'), word);

/** Returns undefined while the answer goes on. */
export function readFinish(
  value: unknown,
  words?: Words,
): { means: FinishReading; word: string } | undefined {
  if (typeof value !== 'string' || value === '' || value === 'null') return undefined;
  const word = normalizeWord(value);
  const own = Object.entries(words?.finish ?? {}).find(([pattern]) => fitsWord(pattern, word));
  return { means: own?.[1] ?? readWords([word], finishLines) ?? 'unknown', word };
}

const meanings: Record<(typeof errorMeanings)[number], ErrorMeaning> = {
  too_long: 'too_long',
  account: 'account',
  rate_limit: 429,
  overloaded: 529,
  failed: 'failed',
  caller: 400,
};

export interface ErrorFacts {
  /** Vocabulary lines of the channel's row. */
  words?: Words | undefined;
  /** The request that was refused. A sentence that it contains decides nothing, because the error may quote it. */
  sentBody?: string | undefined;
}

type NamedError = Pick<UpstreamError, 'code' | 'type' | 'reasons'>;

/** The code counts before the type, which is less specific. */
const listWords = ({ code, type, reasons = [] }: NamedError): string[] =>
  [code, type, ...reasons].map(normalizeWord).filter((word) => word !== '');

const textOf = ({ message }: UpstreamError): string =>
  typeof message === 'string' ? message.slice(0, messageLengthMax) : '';

/** The row's lines count first, then words, then sentences. */
export function findErrorMeaning(
  error: UpstreamError,
  { words, sentBody = '' }: ErrorFacts = {},
): ErrorMeaning | undefined {
  const named = listWords(error);
  const text = textOf(error);
  const own = Object.entries(words?.errors ?? {}).find(
    ([pattern]) =>
      named.some((word) => fitsWord(pattern, word)) ||
      (fitsText(pattern, text) && !fitsText(`*${pattern}*`, sentBody)),
  );
  if (own) return meanings[own[1]];
  const begin = text.slice(0, beginMax);
  const sentence = accountSentences.find(([said]) => said.test(begin) && !said.test(sentBody));
  return readWords(named, errorLines) ?? sentence?.[1] ?? readStatus(named) ?? readWords(named, genericLines);
}

const fitsText = (pattern: string, text: string): boolean =>
  text !== '' && fitsPattern(pattern.toLowerCase(), text.toLowerCase());

/** A code may be the status itself. */
function readStatus(named: readonly string[]): number | undefined {
  const code = named.find((word) => /^[45]\d\d$/.test(word));
  return code === undefined ? undefined : Number(code);
}

/** True if a sentence says that the prompt is too long. Other statuses don't count: such an error may quote the sentence. */
export function isTooLong(status: number, error: UpstreamError): boolean {
  const text = textOf(error);
  const isOfAnother = [error.param, text].some((said) => otherFields.test(textIn(said)));
  return (
    tooLongStatuses.has(status) &&
    !isOfAnother &&
    !/\brate\b|\bper (?:minute|hour|day)\b/i.test(text) &&
    tooLongSentences.some((sentence) => sentence.test(text))
  );
}
/** An error that names one of these fields as its param, or first in its text, is not about the prompt. */
const otherFields =
  /^(?:tools?|functions?|response_format|user|metadata|stop|safety_identifier|prompt_cache_key)(?:[.[:]|$)/;
/** Together sends a 403 [docs.together.ai, "Error codes"]. */
const tooLongStatuses = new Set([400, 403, 413, 422]);

/** Only published words are logged, so that an upstream can't write its own text into the log. */
const publishedWords: ReadonlySet<string> = new Set(
  [
    'insufficient_quota rate_limit_exceeded tokens requests invalid_api_key invalid_request_error server_error',
    'billing_hard_limit_reached billing_not_active exceeded_current_quota_error account_deactivated',
    'context_length_exceeded model_not_found unsupported_parameter unsupported_value invalid_value',
    'missing_required_parameter unknown_parameter invalid_type invalid_image_url content_policy_violation',
    'content_filter string_above_max_length integer_above_max_value invalid_json_schema invalid_function_parameters',
    'authentication_error permission_error not_found_error request_too_large rate_limit_error api_error',
    'overloaded_error timeout_error billing_error internal_server_error engine_overloaded_error Arrearage',
    'INVALID_ARGUMENT FAILED_PRECONDITION PERMISSION_DENIED NOT_FOUND RESOURCE_EXHAUSTED INTERNAL UNAVAILABLE',
    'DEADLINE_EXCEEDED UNAUTHENTICATED API_KEY_INVALID ValidationException ThrottlingException',
    'AccessDeniedException ModelTimeoutException ModelNotReadyException ServiceUnavailableException',
    'ModelErrorException ServiceQuotaExceededException ResourceNotFoundException InternalServerException',
    'DeploymentNotFound OperationNotSupported upstream_refused invalid_encrypted_content',
  ].flatMap((line) => line.split(' ')),
);
const publishedNormalized = new Set([...publishedWords].map(normalizeWord));

/** Finds the word for the log: the first published one, or `other` if none is published. */
export function findPublishedWord({ code, type, reasons = [] }: NamedError): string | undefined {
  const said = [code, ...reasons, type].filter((word) => typeof word === 'string');
  return said.find((word) => publishedWords.has(word)) ?? (said.length > 0 ? 'other' : undefined);
}

/** Returns the first word of an error if it has no line and is not published. */
export function findUnknownWord(error: NamedError, words?: Words): string | undefined {
  const isKnown = (word: string): boolean =>
    publishedNormalized.has(word) || findErrorMeaning({ code: word }, { words }) !== undefined;
  const [first] = listWords(error);
  return first === undefined || isKnown(first) ? undefined : first;
}
