/** The form of a Responses request, the encrypted content that comes back, and OpenAI's rejections. */
import { prefixHashes, type ScriptTool, type Transcript } from '../script.ts';
import { asRecord, isRecord, jsonText, recordsIn } from '../../../../shared/wire/json.ts';
import {
  readContentText,
  signPayload,
  hashSha256,
  verifyPayload,
  type VendorRefusal,
  type Rules,
} from '../vendor.ts';

/** A Responses request whose outer form is right; the rules look at the rest. */
export interface ResponsesCall {
  headers: Record<string, string>;
  body: Record<string, unknown>;
  model: string;
  /** Owner of the encrypted content, identified by the bearer token. */
  organization: string;
  items: VendorInputItem[];
}

export interface VendorInputItem extends Record<string, unknown> {
  type: string;
}

export function parseResponsesCall(
  headers: Record<string, string>,
  body: Record<string, unknown>,
  organization: string,
): ResponsesCall {
  const input = body['input'];
  const items =
    typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : recordsIn(input);
  return {
    headers,
    body,
    model: jsonText(body['model']),
    organization,
    items: items.map((item) => Object.assign({}, item, { type: jsonText(item['type'] ?? 'message') })),
  };
}

export const isCall = ({ type }: VendorInputItem): boolean =>
  type === 'function_call' || type === 'custom_tool_call';
export const isOutput = ({ type }: VendorInputItem): boolean =>
  type === 'function_call_output' || type === 'custom_tool_call_output';
export const isUser = ({ type, role }: VendorInputItem): boolean => type === 'message' && role === 'user';

export function readResponsesTranscript({ body, items }: ResponsesCall): Transcript {
  // Behind a compaction nothing of a question is left but what the item says.
  const lastUser = items.findLastIndex((item) => isUser(item) || item.type === 'compaction');
  const after = items.slice(lastUser + 1).filter(({ type }) => type !== 'reasoning');
  const names = new Map(
    after.filter(isCall).map(({ call_id: id, name }) => [jsonText(id), jsonText(name)] as const),
  );
  const { schema } = asRecord(asRecord(body['text'])['format']);
  return {
    said: readEncryptedText(items[lastUser] ?? {}) ?? readContentText(items[lastUser]?.['content']),
    // Calls of one turn stand together.
    turns: after.filter((item, index) => isCall(item) && !(index > 0 && isCall(after[index - 1]!))).length,
    results: after.filter(isOutput).map(({ call_id: id, output }) => ({
      name: names.get(jsonText(id)) ?? '',
      text: readContentText(output),
    })),
    ...readTools(body, items),
    ...(body['parallel_tool_calls'] === false && { single: true }),
    ...(isRecord(schema) && { schema }),
    whole: () => items.map((item) => readEncryptedText(item) ?? JSON.stringify(item)).join('\n'),
  };
}

/** Decrypts an item as the vendor would. */
export const readEncryptedText = ({
  encrypted_content: content,
}: Record<string, unknown>): string | undefined => {
  const text =
    typeof content === 'string' ? verifyPayload(content.slice(prefix.length))?.['text'] : undefined;
  return typeof text === 'string' ? text : undefined;
};

function readTools(
  { tools, tool_choice: choice }: Record<string, unknown>,
  items: VendorInputItem[],
): Pick<Transcript, 'tools' | 'choice'> {
  const added = items.flatMap((item) => recordsIn(item['tools']));
  const declared = [...recordsIn(tools), ...added].flatMap((tool) => listCallable(tool));
  if (choice === 'none' || choice === 'required') return { tools: declared, choice };
  if (!isRecord(choice)) return { tools: declared, choice: 'auto' };
  if (choice['type'] === 'allowed_tools') {
    const allowed = new Set(recordsIn(choice['tools']).map((tool) => tool['name']));
    return {
      tools: declared.filter(({ name }) => allowed.has(name)),
      choice: choice['mode'] === 'required' ? 'required' : 'auto',
    };
  }
  return { tools: declared, choice: { name: jsonText(choice['name']) } };
}

/** Hosted tools are the vendor's to call. */
function listCallable(tool: Record<string, unknown>, namespace?: string): ScriptTool[] {
  const { type, name, parameters, tools } = tool;
  if (type === 'namespace') return recordsIn(tools).flatMap((inner) => listCallable(inner, jsonText(name)));
  if (type !== 'function' && type !== 'custom') return [];
  return [
    {
      name: jsonText(name),
      custom: type === 'custom',
      ...(isRecord(parameters) && { parameters }),
      ...(namespace !== undefined && { namespace }),
    },
  ];
}

/** Instructions, tools, then items: what a cache of prefixes sees. Models that bind reasoning have instructions after all else, in no cache. */
export function listPromptParts(call: ResponsesCall): string[] {
  const { body, items } = call;
  const left = new Set(listDroppedReasoning(call).map(({ item }) => item));
  return [
    ...(bindsReasoning(call) ? [] : [jsonText(body['instructions'])]),
    JSON.stringify(body['tools'] ?? []),
    ...items.filter((item) => !left.has(item)).map((item) => JSON.stringify(item)),
  ];
}

/** Since GPT-6.2 [developers.openai.com/api/docs/guides/keep-prefix-unchanged, 2026-11-17]. */
export const bindsReasoning = ({ model }: Pick<ResponsesCall, 'model'>): boolean => /gpt-6\.2/.test(model);

/** Hashes of everything before each item: tools and items as the model sees them, without instructions. */
export const prefixesOf = ({ body, items }: ResponsesCall): string[] =>
  prefixHashes('gpt', [JSON.stringify(body['tools'] ?? []), ...items.map(serializeItem)]);

/** Fields of the service, which the model does not see. */
const unseen = new Set('id status summary annotations logprobs prompt_cache_breakpoint'.split(' '));
const serializeItem = (item: VendorInputItem): string =>
  JSON.stringify(item, (field, value: unknown) => (unseen.has(field) ? undefined : value));

export const endUserOf = ({ body }: ResponsesCall): string =>
  jsonText(body['safety_identifier'] ?? body['user']);

/** The reasoning that is left out, each with the reason [OpenAI's SDK 7.57, `Response.InputTransformation`, 2026-11-25]. */
export function listDroppedReasoning(call: ResponsesCall) {
  if (!bindsReasoning(call)) return [];
  const prefixes = prefixesOf(call);
  return call.items.flatMap((item, at) => {
    const facts = item.type === 'reasoning' ? decryptFacts(jsonText(item['encrypted_content'])) : undefined;
    if (!facts) return [];
    const reason =
      (facts['organization'] !== hashShort(call.organization) && 'organization_mismatch') ||
      (facts['endUser'] !== endUserOf(call) && 'end_user_mismatch') ||
      (facts['model'] !== call.model && 'model_mismatch') ||
      (facts['prefix'] !== prefixes[at] && 'prefix_mismatch');
    return reason ? [{ item, reason, id: jsonText(facts['item']) }] : [];
  });
}

export const responsesFields = (
  'background context_management conversation include input instructions max_output_tokens max_tool_calls metadata ' +
  'model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options ' +
  'prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text ' +
  'tool_choice tools top_logprobs top_p truncation user'
).split(' ');

const itemFields: Record<string, string[]> = {
  message: ['id', 'role', 'content', 'status', 'phase'],
  function_call: ['id', 'call_id', 'name', 'arguments', 'status', 'namespace', 'caller', 'async'],
  function_call_output: ['id', 'call_id', 'output', 'status', 'caller', 'async'],
  custom_tool_call: ['id', 'call_id', 'name', 'input', 'status', 'namespace', 'caller', 'async'],
  custom_tool_call_output: ['id', 'call_id', 'output', 'status', 'caller', 'async'],
  reasoning: ['id', 'summary', 'content', 'encrypted_content', 'status'],
  additional_tools: ['id', 'role', 'tools'],
  configuration_update: ['id', 'reasoning', 'text'],
  tool_search_call: ['id', 'call_id', 'execution', 'arguments', 'status'],
  tool_search_output: ['id', 'call_id', 'execution', 'tools', 'status'],
  compaction: ['id', 'encrypted_content', 'created_by'],
  compaction_trigger: ['id'],
  item_reference: ['id'],
};

export const createRefusal = (message: string, param: string, code: string | null = null): VendorRefusal => ({
  status: 400,
  message,
  param,
  code,
});

const isUnknown = (field: string, { type }: VendorInputItem): boolean =>
  field !== 'type' && !itemFields[type]?.includes(field);

const listPartTypes = (role: unknown): string[] =>
  role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file'];

export const responsesRules: Rules<ResponsesCall> = {
  // Input items are of the types of the schema [openai/openai-openapi (CreateResponse)].
  'item-type'({ items }) {
    const index = items.findIndex(({ type }) => !itemFields[type]);
    const wanted = Object.keys(itemFields).map((type) => `'${type}'`);
    const message = `Invalid value: '${items[index]?.type}'. Supported values are: ${wanted.join(', ')}.`;
    return index >= 0 && createRefusal(message, `input[${index}].type`, 'invalid_value');
  },
  // Input items have the fields of their schema and no others [openai/openai-openapi (CreateResponse)].
  'item-field'({ items }) {
    for (const [index, item] of items.entries()) {
      const field = Object.keys(item).find((name) => isUnknown(name, item));
      const place = `input[${index}].${field}`;
      if (field) return createRefusal(`Unknown parameter: '${place}'.`, place, 'unknown_parameter');
    }
    return undefined;
  },
  // An assistant's message has output parts, any other input parts [openai/openai-openapi (CreateResponse)].
  'content-type'({ items }) {
    for (const [index, { type, role, content }] of items.entries()) {
      const known = listPartTypes(role);
      const part =
        type === 'message'
          ? recordsIn(content).findIndex((each) => !known.includes(jsonText(each['type'])))
          : -1;
      const place = `input[${index}].content[${part}]`;
      const wanted = known.map((each) => `'${each}'`).join(' and ');
      if (part >= 0)
        return createRefusal(
          `Invalid value at '${place}'. Supported values are: ${wanted}.`,
          place,
          'invalid_value',
        );
    }
    return undefined;
  },
  // The limit max_output_tokens is at least 16 [platform.openai.com/docs/api-reference/responses/create].
  'output-limit': ({ body: { max_output_tokens: limit } }) =>
    typeof limit === 'number' &&
    limit < 16 &&
    createRefusal(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`,
      'max_output_tokens',
      'integer_below_min_value',
    ),
  // A response that was not stored cannot be continued by its id [smg-project/smg/pull/916, 2026-03-26].
  'previous-response': ({ body: { previous_response_id: id } }) =>
    typeof id === 'string' &&
    createRefusal(
      `Previous response with id '${id}' not found.`,
      'previous_response_id',
      'previous_response_not_found',
    ),
  // Items that were not stored come back whole, reasoning with its encrypted content [vercel/ai/issues/7543,
  // 2025-07-25].
  'not-persisted'({ items }) {
    const lost = items.find(
      ({ type, id, encrypted_content: content }) =>
        type === 'item_reference' || (type === 'reasoning' && id !== undefined && !content),
    );
    const message = `Item with id '${jsonText(lost?.['id'])}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;
    return lost && { ...createRefusal(message, 'input'), status: 404 };
  },
  // Encrypted content is unchanged, of this organisation and of its item [BerriAI/litellm/issues/18094, 2025-12-17].
  'encrypted-content'(call) {
    const { items } = call;
    // If reasoning is bound to an organization, drop another organization's.
    const organization = bindsReasoning(call) ? undefined : call.organization;
    for (const { encrypted_content: content, id } of items) {
      if (typeof content !== 'string') continue;
      const problem = findEncryptionProblem(content, { organization, item: id });
      const shown =
        typeof id === 'string' ? `for item ${id}` : `${content.slice(0, 4)}...${content.slice(-4)}`;
      if (problem)
        return {
          status: 400,
          message: `The encrypted content ${shown} could not be verified. Reason: ${problem}`,
          code: 'invalid_encrypted_content',
        };
    }
    return undefined;
  },
  // The compaction trigger must be the last item [openai-node 7.57.0, `CompactionTrigger`].
  'trigger-last'({ items }) {
    const index = items.findIndex(({ type }) => type === 'compaction_trigger');
    const message = "'compaction_trigger' must be the final input item.";
    return index >= 0 && index < items.length - 1 && createRefusal(message, `input[${index}]`);
  },
  // A reasoning item stands before what came of it [vercel/ai/issues/7099, 2025-07-07].
  'reasoning-followed'({ items }) {
    const index = items.findIndex(
      (item, at) => item.type === 'reasoning' && !followsReasoning(items[at + 1]),
    );
    const message = `Item '${jsonText(items[index]?.['id'])}' of type 'reasoning' was provided without its required following item.`;
    return index >= 0 && createRefusal(message, 'input');
  },
  // A call that comes back with its item id needs the reasoning item of its turn before it
  // [0xPlaygrounds/rig/issues/751, 2025-08-28].
  'reasoning-required'({ items }) {
    const index = items.findIndex((item, at) => {
      const wanted = isCall(item) ? reasoningIdOf(item['id']) : undefined;
      return wanted !== undefined && !items.slice(0, at).some((each) => isReasoningOf(each, wanted));
    });
    const { type, id } = items[index] ?? { type: '' };
    const message = `Item '${jsonText(id)}' of type '${type}' was provided without its required 'reasoning' item: '${reasoningIdOf(id)}'.`;
    return index >= 0 && createRefusal(message, 'input');
  },
  // Each call has an output [platform.openai.com/docs/guides/function-calling], asynchronous ones later
  // [developers.openai.com/api/docs/guides/async-tool-calling].
  'calls-answered'({ items }) {
    const answered = new Set(items.filter(isOutput).map(({ call_id: id }) => id));
    const open = items.find(
      (item) => isCall(item) && item['async'] !== true && !answered.has(item['call_id']),
    );
    const message = `No tool output found for ${open?.type === 'custom_tool_call' ? 'custom tool' : 'function'} call ${jsonText(open?.['call_id'])}.`;
    return open && createRefusal(message, 'input');
  },
  // Each output belongs to a call before it [platform.openai.com/docs/guides/function-calling].
  'outputs-asked'({ items }) {
    const stray = items.find(
      (item, at) =>
        isOutput(item) &&
        !items.slice(0, at).some((each) => isCall(each) && each['call_id'] === item['call_id']),
    );
    const message = `No tool call found for function call output with call_id ${jsonText(stray?.['call_id'])}.`;
    return stray && createRefusal(message, 'input');
  },
};

const followsReasoning = (item: VendorInputItem | undefined): boolean =>
  item !== undefined &&
  (isCall(item) || item.type === 'reasoning' || (item.type === 'message' && item['role'] === 'assistant'));

/** Codex sends reasoning items without ids, which stand for any. */
const isReasoningOf = ({ type, id }: VendorInputItem, wanted: string): boolean =>
  type === 'reasoning' && (id === undefined || id === wanted);

/** The schema of a strict tool or format, if it allows more than it names. */
export const isLooseSchema = (schema: unknown): boolean =>
  isRecord(schema) && schema['type'] === 'object' && schema['additionalProperties'] !== false;

/**
 * The contents of `encrypted_content`: opaque to clients, bound to an organization and an item, and to more since
 * GPT-6.2.
 */
interface Sealed {
  organization: string;
  item: string;
  text: string;
  model?: string;
  endUser?: string;
  prefix?: string | undefined;
}

const prefix = 'gAAAA';
const hashShort = (text: string): string => hashSha256(text).slice(0, 16);

export const encryptFacts = ({ organization, ...facts }: Sealed): string =>
  prefix + signPayload({ ...facts, organization: hashShort(organization) });

const decryptFacts = (content: string): Record<string, unknown> | undefined =>
  content.startsWith(prefix) ? verifyPayload(content.slice(prefix.length)) : undefined;

/** Why the content cannot be used for the item; undefined where it can. `organization` undefined: it is not bound to one. */
export function findEncryptionProblem(
  content: string,
  { organization, item }: { organization: string | undefined; item: unknown },
): string | undefined {
  const facts = decryptFacts(content);
  if (!facts) return 'Encrypted content could not be decrypted or parsed.';
  if (organization !== undefined && facts['organization'] !== hashShort(organization))
    return 'Encrypted content organization_id did not match the target organization.';
  // Codex leaves the id out.
  if (item !== undefined && item !== null && item !== facts['item'])
    return 'Encrypted content item_id did not match the target item id.';
  return undefined;
}

/** Digits that stand in all ids of one turn: equal requests get equal ids. */
export const turnDigits = (organization: string, parts: string[]): string =>
  hashSha256(JSON.stringify([organization, parts])).slice(0, 24);

/** The reasoning item of the turn that a call's item belongs to. */
export const reasoningIdOf = (callItemId: unknown): string | undefined => {
  const digits = /^(?:fc|ctc)_([0-9a-f]{24})r\d+$/.exec(jsonText(callItemId))?.[1];
  return digits && `rs_${digits}`;
};
