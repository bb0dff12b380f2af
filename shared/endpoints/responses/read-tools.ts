import type { ResponsesTool } from './responses-request.ts';
import type { ChatTool } from '../../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from '../../wire/json-record.ts';
import { flatToolName, type DeclaredTool } from './tool-names.ts';

export interface ConvertedTools {
  tools: ChatTool[];
  /** The declared tools, by flat name. */
  declared: Map<string, DeclaredTool>;
  /** The number of tools left out because chat upstreams do not support them, such as `web_search`. */
  dropped: number;
}

/**
 * Converts Responses tools to chat functions. A custom tool, whose input is free text, becomes a function
 * with one string. The tools of a namespace become functions with joined names. The first tool of a name is
 * used, later ones are ignored.
 */
export function responsesToolsToChat(tools: readonly ResponsesTool[]): ConvertedTools {
  const converted: ConvertedTools = { tools: [], declared: new Map(), dropped: 0 };
  for (const tool of tools) addTool(converted, tool, undefined);
  return converted;
}

function addTool(converted: ConvertedTools, source: JsonRecord, namespace: string | undefined): void {
  const tool = plainTool(source);
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

/**
 * Converts a tool to Responses form: some clients send its fields under `function`, as in Chat Completions.
 */
export function plainTool(tool: JsonRecord): JsonRecord {
  const inner = tool['function'];
  const fields = isRecord(inner) && tool['name'] === undefined ? inner : tool;
  return { ...fields, type: tool['type'] ?? 'function' };
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

/** A tool choice in chat form, and the tools that it allows. */
export interface ConvertedChoice {
  tools: ChatTool[];
  choice: unknown;
}

/** Converts a tool choice to chat form. A choice of an unknown or a built-in tool becomes `auto`. */
export function toolChoiceToChat(choice: unknown, tools: ChatTool[]): ConvertedChoice {
  if (choice === 'none' || choice === 'required') return { tools, choice };
  if (!isRecord(choice)) return { tools, choice: 'auto' };
  if (choice['type'] === 'allowed_tools') return allowedTools(choice, tools);
  const name = chosenName(choice);
  const known = tools.some((tool) => tool.function?.name === name);
  return { tools, choice: known ? { type: 'function', function: { name } } : 'auto' };
}

/** Removes the other tools, because few chat upstreams support a list of allowed tools. */
function allowedTools(choice: JsonRecord, tools: ChatTool[]): ConvertedChoice {
  const entries = Array.isArray(choice['tools']) ? choice['tools'].filter(isRecord) : [];
  const names = new Set(entries.map(chosenName));
  const allowed = tools.filter((tool) => names.has(tool.function?.name));
  if (allowed.length === 0) return { tools, choice: 'auto' };
  return { tools: allowed, choice: choice['mode'] === 'required' ? 'required' : 'auto' };
}

function chosenName(choice: JsonRecord): string | undefined {
  const { name, namespace } = plainTool(choice);
  return typeof name === 'string' ? flatToolName(name, namespace) : undefined;
}
