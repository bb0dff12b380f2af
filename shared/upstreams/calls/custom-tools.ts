/**
 * Custom tools, whose input is free text, for upstreams that know functions alone: the tool becomes a function with
 * one string `input`, and its calls are converted back. Any dialect may use it.
 */
import type { ChatTool } from '../../wire/chat-request.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../../wire/json-record.ts';

/** The name of a tool in chat form; undefined: it has none. */
export function toolName(tool: ChatTool): string | undefined {
  const { name } = asRecord(tool.type === 'custom' ? tool['custom'] : tool.function);
  return typeof name === 'string' ? name : undefined;
}

/** The function that stands for a custom tool. Its grammar goes into the description. */
export function wrappedTool(
  tool: ChatTool,
): ChatTool & { function: { name: string; parameters: JsonRecord } } {
  const { description, format } = asRecord(tool['custom']);
  const { definition, syntax } = asRecord(asRecord(format)['grammar']);
  const kind = typeof syntax === 'string' ? ` (${syntax})` : '';
  const words = [
    description,
    typeof definition === 'string' ? `The input must match this grammar${kind}:\n${definition}` : '',
  ];
  return {
    type: 'function',
    function: {
      name: toolName(tool) ?? '',
      description: words.filter((word) => typeof word === 'string' && word !== '').join('\n\n'),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  };
}

/** The arguments of a call of a wrapped tool. */
export const wrappedInput = (input: string): string => JSON.stringify({ input });

/**
 * The input in the complete arguments of such a call. Some models choose another name for the one string, or write
 * the text without a wrapper: it is accepted as it is.
 */
export function unwrappedInput(text: string): string {
  const value = parseJson(text);
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return text;
  if (typeof value['input'] === 'string') return value['input'];
  const values = Object.values(value);
  const [only] = values;
  if (values.length === 0) return '';
  return values.length === 1 && typeof only === 'string' ? only : text;
}
