/** OpenAI's Responses, served: the items of a turn, the response around them, and its events. */
import {
  answerAsAsked,
  asks,
  findFacts,
  countOutput,
  piecesOf,
  countPromptTokens,
  refusalOf,
  wordsOf,
  type AskedTurn,
  type Counts,
  type PrefixMemory,
  type ModelTurn,
} from '../script.ts';
import { asRecord, jsonText, recordsIn } from '../../../../shared/wire/json.ts';
import {
  replyWithJson,
  parseObject,
  refuseByRule,
  formatSseFrame,
  replyWithSse,
  type VendorRefusal,
  type Rules,
  type VendorReply,
} from '../vendor.ts';
import {
  bindsReasoning,
  listDroppedReasoning,
  encryptFacts,
  endUserOf,
  isCall,
  isUser,
  prefixesOf,
  listPromptParts,
  createRefusal,
  parseResponsesCall,
  readResponsesTranscript,
  turnDigits,
  type VendorInputItem,
  type ResponsesCall,
} from './rules.ts';

type Json = Record<string, unknown>;

interface ResponsesServer extends Pick<AskedTurn, 'refuse' | 'failures'> {
  rules: Rules<ResponsesCall>;
  thinks: (call: ResponsesCall) => boolean;
  memory: PrefixMemory;
}

interface ResponsesRequest {
  headers: Record<string, string>;
  text: string;
  organization: string;
  /** For `/compact`, which answers with the conversation's summary, and `/input_tokens`. */
  asks?: 'compact' | 'count';
}

export function serveResponses(
  { headers, text, organization, asks: asked }: ResponsesRequest,
  server: ResponsesServer,
): VendorReply {
  const { rules, refuse } = server;
  const body = parseObject(text);
  if (!body) return refuse({ status: 400, message: 'We could not parse the JSON body of your request.' });
  if (body['input'] === undefined)
    return refuse(
      createRefusal("Missing required parameter: 'input'.", 'input', 'missing_required_parameter'),
    );
  const call = parseResponsesCall(headers, body, organization);
  const unknown = asked && Object.keys(body).find((field) => !fieldsOf[asked].split(' ').includes(field));
  if (unknown) return refuse(createRefusal(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter'));
  const refusal = refuseByRule(rules, call, refuse);
  if (refusal || !asked) return refusal ?? answer(call, server);
  return asked === 'compact' ? replyCompacted(call, server) : countReply(call);
}

/** [developers.openai.com/api/reference, "Compact a response" and "Get input token counts", November 2026] */
const fieldsOf = {
  compact:
    'model input instructions previous_response_id prompt_cache_key prompt_cache_options prompt_cache_retention service_tier image',
  count:
    'model input instructions previous_response_id conversation parallel_tool_calls reasoning text tool_choice tools truncation',
};

const countReply = (call: ResponsesCall): VendorReply =>
  replyWithJson(200, {
    object: 'response.input_tokens',
    input_tokens: countPromptTokens(listPromptParts(call).join('')),
  });

function answer(call: ResponsesCall, { refuse, failures, thinks, memory }: ResponsesServer): VendorReply {
  const streams = call.body['stream'] === true;
  const { message, type } = brokenOff;
  return answerAsAsked({
    transcript: readResponsesTranscript(call),
    streams,
    thinks: thinks(call),
    limit: Number(call.body['max_output_tokens'] ?? Infinity),
    refuse,
    failures,
    brokenOff,
    streamError: eventFrame({ type: 'error', code: type, message, param: null, sequence_number: 99 }),
    overlongStream: () => replyTooLong(call, refusalOf(failures.window)),
    reply(turn) {
      const asked = call.items.at(-1)?.type === 'compaction_trigger';
      const output = asked ? [buildCompactionItem(call)] : buildOutputItems(call, turn);
      const isCut = !asked && turn.finish === 'length';
      const finished = buildFinishedResponse(call, { output, isCut, counts: countsOf(call, turn, memory) });
      return streams
        ? replyWithSse(buildResponseFrames(emptyResponse(call), finished))
        : replyWithJson(200, finished);
    },
    notes: () => noteTolerated(call),
  });
}

/** A stream that fails with its first event. */
const replyTooLong = (call: ResponsesCall, { code, message }: VendorRefusal): VendorReply =>
  replyWithSse([
    eventFrame({
      type: 'response.failed',
      response: { ...emptyResponse(call), status: 'failed', error: { code, message } },
      sequence_number: 0,
    }),
  ]);

const brokenOff = {
  status: 500,
  message: 'The server had an error while processing your request. Sorry about that!',
  type: 'server_error',
};

function countsOf(call: ResponsesCall, turn: ModelTurn, memory: PrefixMemory): Counts {
  const key = jsonText(call.body['prompt_cache_key']);
  const { total, seen } = memory.promptCounts(
    `${call.organization} ${call.model} ${key}`,
    listPromptParts(call),
  );
  const isCached = total >= 1024;
  const cacheRead = isCached ? seen : 0;
  const written = isCached ? total - cacheRead - 1 : 0;
  const apart = bindsReasoning(call) ? countPromptTokens(jsonText(call.body['instructions'])) : 0;
  const input = total - cacheRead - written + apart;
  return { input, cacheRead, cacheWrite5m: written, cacheWrite1h: 0, ...countOutput(turn) };
}

const buildCompactionItem = (call: ResponsesCall) => {
  const id = `cmp_${turnDigits(call.organization, listPromptParts(call))}`;
  const text = `${call.items.length} items: ${findFacts(readResponsesTranscript(call).whole())}`;
  return {
    id,
    type: 'compaction',
    encrypted_content: encryptFacts({ organization: call.organization, item: id, text }),
  };
};

function replyCompacted(call: ResponsesCall, { memory, refuse }: ResponsesServer): VendorReply {
  if (call.items.length === 0) return refuse(createRefusal("Missing required parameter: 'input'.", 'input'));
  const turn: ModelTurn = {
    thinking: '',
    text: 'a summary of some words',
    calls: [],
    finish: 'stop',
    step: 0,
    question: '',
  };
  const item = buildCompactionItem(call);
  return replyWithJson(200, {
    id: item.id.replace('cmp', 'resp'),
    object: 'response.compaction',
    created_at: 1_790_000_000,
    output: [...call.items.filter(isUser), item],
    usage: usageOf(countsOf(call, turn, memory)),
  });
}

/** Calls whose turn had reasoning that did not come back are accepted without an item id, and worse answers follow; so is reasoning that is dropped. */
function noteTolerated(call: ResponsesCall): string[] {
  const { items } = call;
  const lacks = items.some(
    (item, at) => isCall(item) && isReasoned(item) && !hasReasoning(items.slice(0, at)),
  );
  const dropped = listDroppedReasoning(call).map(({ reason }) => `dropped: ${reason}`);
  return [...(lacks ? ['a call without the reasoning of its turn'] : []), ...dropped];
}

const isReasoned = ({ call_id: id }: VendorInputItem): boolean => /^call_[0-9a-f]{24}r\d+$/.test(String(id));

/** Looks for reasoning right before the calls of the turn, ignoring other calls and comments. */
function hasReasoning(before: VendorInputItem[]): boolean {
  const last = before.findLast(
    (item) => !isCall(item) && !(item.type === 'message' && item['role'] === 'assistant'),
  );
  return last?.type === 'reasoning';
}

/** The output items of a turn. Thinking that is empty gives no reasoning item. */
function buildOutputItems(call: ResponsesCall, turn: ModelTurn): Json[] {
  const digits = turnDigits(call.organization, listPromptParts(call));
  const reasons = turn.thinking !== '';
  const status = turn.finish === 'length' ? 'incomplete' : 'completed';
  const calls = turn.calls.map(({ name, input, custom, namespace }, index) => {
    // Calls of a turn with reasoning are known by their ids.
    const id = `${digits}${reasons ? 'r' : 'p'}${index}`;
    const shared = { call_id: `call_${id}`, name, ...(namespace !== undefined && { namespace }) };
    const isLast = index === turn.calls.length - 1;
    return custom
      ? { id: `ctc_${id}`, type: 'custom_tool_call', status: isLast ? status : 'completed', ...shared, input }
      : {
          id: `fc_${id}`,
          type: 'function_call',
          status: isLast ? status : 'completed',
          ...shared,
          arguments: input,
        };
  });
  const isCut = status === 'incomplete' && calls.length === 0;
  const made: Json[] = [];
  const addReasoning = (id: string, text: string): void => {
    const items = made.map((item) => Object.assign({}, item, { type: jsonText(item['type']) }));
    made.push(buildReasoningItem({ ...call, items: [...call.items, ...items] }, id, text));
  };
  if (reasons) addReasoning(`rs_${digits}`, turn.thinking);
  if (turn.text !== '')
    made.push(buildMessageItem(turn, { id: `msg_${digits}`, status: isCut ? status : 'completed' }));
  const interleaves = reasons && asks(readResponsesTranscript(call).said, 'interleave');
  for (const [index, each] of calls.entries()) {
    if (interleaves && made.at(-1)?.['type'] !== 'reasoning')
      addReasoning(`rs_${digits}_${index}`, 'Now this one.');
    made.push(each);
  }
  return made;
}

function buildReasoningItem(call: ResponsesCall, id: string, text: string): Json {
  const { body, organization, model } = call;
  const facts = { organization, item: id, text };
  const bound = bindsReasoning(call)
    ? { model, endUser: endUserOf(call), prefix: prefixesOf(call).at(-1) }
    : {};
  const reasoning = asRecord(body['reasoning']);
  const included = Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content');
  return {
    id,
    type: 'reasoning',
    summary: reasoning['summary'] ? [{ type: 'summary_text', text }] : [],
    ...(included && { encrypted_content: encryptFacts({ ...facts, ...bound }) }),
  };
}

function buildMessageItem(turn: ModelTurn, { id, status }: { id: string; status: string }): Json {
  const part =
    turn.finish === 'refusal'
      ? { type: 'refusal', refusal: turn.text }
      : { type: 'output_text', text: turn.text, annotations: [], logprobs: [] };
  const phase = turn.calls.length > 0 ? 'commentary' : 'final_answer';
  return { id, type: 'message', role: 'assistant', status, phase, content: [part] };
}

const usageOf = ({ input, cacheRead, cacheWrite5m, output, thinking }: Counts): Json => ({
  input_tokens: input + cacheRead + cacheWrite5m,
  input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite5m },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: thinking },
  total_tokens: input + cacheRead + cacheWrite5m + output,
});

/** The response object, as it is before anything was made. */
function emptyResponse(call: ResponsesCall): Json {
  const { body, model } = call;
  return {
    id: `resp_${turnDigits(call.organization, listPromptParts(call))}`,
    object: 'response',
    created_at: 1_790_000_000,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    ...(bindsReasoning(call) && {
      input_transformations: listDroppedReasoning(call).map(({ reason, id }) => ({
        type: 'reasoning',
        action: 'removed',
        reason,
        id,
      })),
    }),
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    max_tool_calls: body['max_tool_calls'] ?? null,
    metadata: body['metadata'] ?? {},
    model,
    output: [],
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort: 'medium', summary: null, ...(body['reasoning'] as object | undefined) },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: { format: { type: 'text' }, verbosity: 'medium', ...(body['text'] as object | undefined) },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: null,
    user: body['user'] ?? null,
  };
}

const buildFinishedResponse = (
  call: ResponsesCall,
  { output, isCut, counts }: { output: Json[]; isCut: boolean; counts: Counts },
): Json => ({
  ...emptyResponse(call),
  status: isCut ? 'incomplete' : 'completed',
  completed_at: isCut ? null : 1_790_000_001,
  incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
  output,
  usage: usageOf(counts),
});

type Event = { type: string } & Json;

/** The events of a response, numbered: `started` before, `finished` after all items of its output. */
function buildResponseFrames(started: Json, finished: Json): string[] {
  const events = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...recordsIn(finished['output']).flatMap((item, index) => buildItemEvents(item, index)),
    { type: `response.${jsonText(finished['status'])}`, response: finished },
  ];
  return events.map((event, number) => eventFrame({ ...event, sequence_number: number }));
}

const eventFrame = (event: { type: string } & Json): string => formatSseFrame(event, event.type);

/** The first event of an item, those between, and the last. */
function buildItemEvents(item: Json, index: number): Event[] {
  const place = { item_id: item['id'], output_index: index };
  const { events, opened } = partsOf(item, place);
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...item, ...opened } },
    ...events,
    { type: 'response.output_item.done', output_index: index, item },
  ];
}

interface Parts {
  events: Event[];
  /** The item at the moment it is added. */
  opened: Json;
}

function partsOf(item: Json, place: Json): Parts {
  switch (item['type']) {
    case 'message':
      return {
        opened: { status: 'in_progress', content: [] },
        events: recordsIn(item['content']).flatMap((part, index) =>
          partEvents(
            part,
            { ...place, content_index: index },
            part['type'] === 'refusal' ? texts.refusal : texts.output,
          ),
        ),
      };
    case 'reasoning':
      return {
        opened: { summary: [] },
        events: recordsIn(item['summary']).flatMap((part, index) =>
          partEvents(part, { ...place, summary_index: index }, texts.summary),
        ),
      };
    case 'function_call':
      return buildInputEvents(item, place, { event: 'response.function_call_arguments', field: 'arguments' });
    case 'custom_tool_call':
      return buildInputEvents(item, place, { event: 'response.custom_tool_call_input', field: 'input' });
    case 'compaction':
      return { opened: {}, events: [{ type: 'response.compaction.compacting', ...place }] };
    default:
      return { opened: {}, events: [] };
  }
}

/** A call that was cut has no event that ends its input. */
function buildInputEvents(
  item: Json,
  place: Json,
  { event, field }: { event: string; field: string },
): Parts {
  const input = jsonText(item[field]);
  const at = (type: string, more: Json): Event => ({ type: `${event}.${type}`, ...place, ...more });
  return {
    opened: { status: 'in_progress', [field]: '' },
    events: [
      ...piecesOf(input).map((delta) => at('delta', { delta })),
      ...(item['status'] === 'incomplete' ? [] : [at('done', { [field]: input })]),
    ],
  };
}

interface TextEvents {
  part: string;
  text: string;
  field: string;
  /** The opened part, and the fields of each event of its text. */
  opened: Json;
  more: Json;
}

const texts = {
  output: {
    part: 'content_part',
    text: 'output_text',
    field: 'text',
    opened: { annotations: [] },
    more: { logprobs: [] },
  },
  refusal: { part: 'content_part', text: 'refusal', field: 'refusal', opened: {}, more: {} },
  summary: {
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
    field: 'text',
    opened: {},
    more: {},
  },
} satisfies Record<string, TextEvents>;

function partEvents(part: Json, place: Json, of: TextEvents): Event[] {
  const whole = jsonText(part[of.field]);
  const at = (type: string, more: Json): Event => ({ type: `response.${type}`, ...place, ...more });
  return [
    at(`${of.part}.added`, { part: { ...part, [of.field]: '', ...of.opened } }),
    ...wordsOf(whole).map((delta) => at(`${of.text}.delta`, { delta, ...of.more })),
    at(`${of.text}.done`, { [of.field]: whole, ...of.more }),
    at(`${of.part}.done`, { part }),
  ];
}
