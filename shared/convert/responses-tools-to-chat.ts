import type { ResponsesTool } from '../wire/responses-request.ts';
import type { ChatTool } from '../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from './json-record.ts';
import { flatToolName, type DeclaredTool } from './tool-names.ts';

export interface ConvertedTools {
  tools: ChatTool[];
  /** By flat name. */
  declared: Map<string, DeclaredTool>;
  /** Tools that a chat upstream cannot have, such as `web_search`: left out, and counted. */
  dropped: number;
}

/**
 * Responses tools as chat functions. A custom tool, whose input is free text, becomes a function of one string; the
 * tools of a namespace become functions under joined names. The first of a name counts.
 */
export function responsesToolsToChat(tools: readonly ResponsesTool[]): ConvertedTools {
  const converted: ConvertedTools = { tools: [], declared: new Map(), dropped: 0 };
  for (const tool of tools) addTool(converted, tool, undefined);
  return converted;
}

function addTool(converted: ConvertedTools, tool: JsonRecord, namespace: string | undefined): void {
  const { type, name } = tool;
  if (typeof name !== 'string' || name === '') {
    converted.dropped += 1;
    return;
  }
  if (type === 'namespace' && namespace === undefined && Array.isArray(tool['tools'])) {
    for (const inner of tool['tools'].filter(isRecord)) addTool(converted, inner, name);
    return;
  }
  if (type !== 'function' && type !== 'custom') {
    converted.dropped += 1;
    return;
  }
  const flat = flatToolName(name, namespace);
  if (converted.declared.has(flat)) return;
  converted.declared.set(flat, { kind: type, name, namespace });
  converted.tools.push(type === 'function' ? functionTool(flat, tool) : customTool(flat, tool));
}

const functionTool = (name: string, tool: JsonRecord): ChatTool => ({
  type: 'function',
  function: {
    name,
    ...(typeof tool['description'] === 'string' && { description: tool['description'] }),
    parameters: isRecord(tool['parameters']) ? tool['parameters'] : { type: 'object', properties: {} },
    ...(typeof tool['strict'] === 'boolean' && { strict: tool['strict'] }),
  },
});

function customTool(name: string, tool: JsonRecord): ChatTool {
  const format = asRecord(tool['format']);
  const grammar = format['definition'];
  const words = [
    tool['description'],
    typeof grammar === 'string' ? `The input must match this grammar:\n${grammar}` : '',
  ];
  return {
    type: 'function',
    function: {
      name,
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

/** A choice in chat form; one that names a tool which is not there, or a built-in one, leaves it to the model. */
export function toolChoiceToChat(choice: unknown, declared: ReadonlyMap<string, DeclaredTool>): unknown {
  if (choice === 'none' || choice === 'required') return choice;
  if (!isRecord(choice)) return 'auto';
  if (choice['type'] === 'allowed_tools') return choice['mode'] === 'required' ? 'required' : 'auto';
  const { name, namespace } = choice;
  if (typeof name !== 'string') return 'auto';
  const flat = flatToolName(name, typeof namespace === 'string' ? namespace : undefined);
  return declared.has(flat) ? { type: 'function', function: { name: flat } } : 'auto';
}
