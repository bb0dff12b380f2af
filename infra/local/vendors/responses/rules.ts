import type { Refusal, Rule } from '../script/vendor.ts';
import { isObject, objectsIn, textIn } from '../script/vendor.ts';
import { encryptionProblem, reasoningIdOf } from './encrypted.ts';
import { isCall, isOutput, type InputItem, type ResponsesCall } from './request.ts';

/** What OpenAI refuses on /v1/responses beside what all of its endpoints refuse. */

const openapi = 'https://github.com/openai/openai-openapi (CreateResponse)';

export const responsesFields = [
  'background',
  'context_management',
  'conversation',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'model',
  'moderation',
  'parallel_tool_calls',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
];

const itemFields: Record<string, string[]> = {
  message: ['id', 'role', 'content', 'status', 'phase'],
  function_call: ['id', 'call_id', 'name', 'arguments', 'status', 'namespace', 'caller', 'async'],
  function_call_output: ['id', 'call_id', 'output', 'status', 'caller', 'async'],
  custom_tool_call: ['id', 'call_id', 'name', 'input', 'status', 'namespace', 'caller', 'async'],
  custom_tool_call_output: ['id', 'call_id', 'output', 'status', 'caller', 'async'],
  reasoning: ['id', 'summary', 'content', 'encrypted_content', 'status'],
  compaction: ['id', 'encrypted_content', 'created_by'],
  compaction_trigger: ['id'],
  item_reference: ['id'],
};

const refused = (message: string, param: string, code: string | null = null): Refusal => ({
  status: 400,
  message,
  param,
  code,
});

const isUnknown = (field: string, { type }: InputItem): boolean =>
  field !== 'type' && !itemFields[type]?.includes(field);

const partTypes = (role: unknown): string[] =>
  role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file'];

export const responsesRules: Rule<ResponsesCall>[] = [
  {
    id: 'item-type',
    says: 'Input items are of the types of the schema.',
    source: openapi,
    date: '2026-11-21',
    check({ items }) {
      const index = items.findIndex(({ type }) => !itemFields[type]);
      const wanted = Object.keys(itemFields).map((type) => `'${type}'`);
      const message = `Invalid value: '${items[index]?.type}'. Supported values are: ${wanted.join(', ')}.`;
      return index >= 0 && refused(message, `input[${index}].type`, 'invalid_value');
    },
  },
  {
    id: 'item-field',
    says: 'Input items have the fields of their schema and no others.',
    source: openapi,
    date: '2026-11-21',
    check({ items }) {
      for (const [index, item] of items.entries()) {
        const field = Object.keys(item).find((name) => isUnknown(name, item));
        const place = `input[${index}].${field}`;
        if (field) return refused(`Unknown parameter: '${place}'.`, place, 'unknown_parameter');
      }
      return undefined;
    },
  },
  {
    id: 'content-type',
    says: "An assistant's message has output parts, any other input parts.",
    source: openapi,
    date: '2026-11-21',
    check({ items }) {
      for (const [index, { type, role, content }] of items.entries()) {
        const known = partTypes(role);
        const part =
          type === 'message'
            ? objectsIn(content).findIndex((each) => !known.includes(textIn(each['type'])))
            : -1;
        const place = `input[${index}].content[${part}]`;
        const wanted = known.map((each) => `'${each}'`).join(' and ');
        if (part >= 0)
          return refused(
            `Invalid value at '${place}'. Supported values are: ${wanted}.`,
            place,
            'invalid_value',
          );
      }
      return undefined;
    },
  },
  {
    id: 'output-limit',
    says: 'The limit max_output_tokens is at least 16.',
    source: 'https://platform.openai.com/docs/api-reference/responses/create',
    date: '2026-11-21',
    check: ({ body: { max_output_tokens: limit } }) =>
      typeof limit === 'number' &&
      limit < 16 &&
      refused(
        `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`,
        'max_output_tokens',
        'integer_below_min_value',
      ),
  },
  {
    id: 'previous-response',
    says: 'A response that was not stored cannot be continued by its id.',
    source: 'https://github.com/smg-project/smg/pull/916',
    date: '2026-03-26',
    check: ({ body: { previous_response_id: id } }) =>
      typeof id === 'string' &&
      refused(
        `Previous response with id '${id}' not found.`,
        'previous_response_id',
        'previous_response_not_found',
      ),
  },
  {
    id: 'not-persisted',
    says: 'Items that were not stored come back whole, reasoning with its encrypted content.',
    source: 'https://github.com/vercel/ai/issues/7543',
    date: '2025-07-25',
    check({ items }) {
      const lost = items.find(
        ({ type, id, encrypted_content: content }) =>
          type === 'item_reference' || (type === 'reasoning' && id !== undefined && !content),
      );
      const message = `Item with id '${textIn(lost?.['id'])}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;
      return lost && { ...refused(message, 'input'), status: 404 };
    },
  },
  {
    id: 'encrypted-content',
    says: 'Encrypted content is unchanged, of this organisation and of its item.',
    source: 'https://github.com/BerriAI/litellm/issues/18094',
    date: '2025-12-17',
    check({ items, organization }) {
      for (const { encrypted_content: content, id } of items) {
        if (typeof content !== 'string') continue;
        const problem = encryptionProblem(content, { organization, item: id });
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
  },
  {
    id: 'reasoning-followed',
    says: 'A reasoning item stands before what came of it.',
    source: 'https://github.com/vercel/ai/issues/7099',
    date: '2025-07-07',
    check({ items }) {
      const index = items.findIndex(
        (item, at) => item.type === 'reasoning' && !followsReasoning(items[at + 1]),
      );
      const message = `Item '${textIn(items[index]?.['id'])}' of type 'reasoning' was provided without its required following item.`;
      return index >= 0 && refused(message, 'input');
    },
  },
  {
    id: 'reasoning-required',
    says: 'A call that comes back with its item id needs the reasoning item of its turn before it.',
    source: 'https://github.com/0xPlaygrounds/rig/issues/751',
    date: '2025-08-28',
    check({ items }) {
      const index = items.findIndex((item, at) => {
        const wanted = isCall(item) ? reasoningIdOf(item['id']) : undefined;
        return wanted !== undefined && !items.slice(0, at).some((each) => isReasoningOf(each, wanted));
      });
      const { type, id } = items[index] ?? { type: '' };
      const message = `Item '${textIn(id)}' of type '${type}' was provided without its required 'reasoning' item: '${reasoningIdOf(id)}'.`;
      return index >= 0 && refused(message, 'input');
    },
  },
  {
    id: 'calls-answered',
    says: 'Each call has an output.',
    source: 'https://platform.openai.com/docs/guides/function-calling',
    date: '2026-11-21',
    check({ items }) {
      const answered = new Set(items.filter(isOutput).map(({ call_id: id }) => id));
      const open = items.find((item) => isCall(item) && !answered.has(item['call_id']));
      const message = `No tool output found for ${open?.type === 'custom_tool_call' ? 'custom tool' : 'function'} call ${textIn(open?.['call_id'])}.`;
      return open && refused(message, 'input');
    },
  },
  {
    id: 'outputs-asked',
    says: 'Each output belongs to a call before it.',
    source: 'https://platform.openai.com/docs/guides/function-calling',
    date: '2026-11-21',
    check({ items }) {
      const stray = items.find(
        (item, at) =>
          isOutput(item) &&
          !items.slice(0, at).some((each) => isCall(each) && each['call_id'] === item['call_id']),
      );
      const message = `No tool call found for function call output with call_id ${textIn(stray?.['call_id'])}.`;
      return stray && refused(message, 'input');
    },
  },
];

const followsReasoning = (item: InputItem | undefined): boolean =>
  item !== undefined &&
  (isCall(item) || item.type === 'reasoning' || (item.type === 'message' && item['role'] === 'assistant'));

/** Codex sends reasoning items without ids, which stand for any. */
const isReasoningOf = ({ type, id }: InputItem, wanted: string): boolean =>
  type === 'reasoning' && (id === undefined || id === wanted);

/** The schema of a strict tool or format, if it allows more than it names. */
export const isLooseSchema = (schema: unknown): boolean =>
  isObject(schema) && schema['type'] === 'object' && schema['additionalProperties'] !== false;
