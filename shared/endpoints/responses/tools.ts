/** Translates the tools of a Responses request and the choice among them to the canonical call. */
import type { PlacedItem } from '../endpoint.ts';
import { declaresTools } from './carried-items.ts';
import type { ResponsesTool } from './request.ts';
import type { ChatRequest, ChatTool } from '../../wire/canonical-call.ts';
import { asRecord, isRecord, listIn, recordsIn, type JsonRecord } from '../../wire/json.ts';
import type { DeclaredTool } from './answer-items.ts';
import { fingerprint, calledNameMax } from '../../wire/ids.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';

interface ConvertedTools {
  tools: ChatTool[];
  declared: Map<string, DeclaredTool>;
  /** Those that an item of the input declares, with their item. */
  byItem: Map<ChatTool, JsonRecord>;
  /**
   * The number of tools that few upstreams support, such as `web_search`, and of those that nobody does, such as a
   * function without a name.
   */
  dropped: number;
}

interface PlacedTool {
  tool: JsonRecord;
  param: string;
  item?: JsonRecord;
}

/** The tools of a request with their places: its own, then those in input items, as newer coding agents declare them. */
export const placeTools = (own: readonly ResponsesTool[], items: readonly PlacedItem[]): PlacedTool[] => [
  ...own.map((tool, i) => ({ tool, param: `tools[${i}]` })),
  ...items.filter(declaresTools).flatMap(({ item, param }) => listInnerTools(item, { param, item })),
];

const listInnerTools = ({ tools }: JsonRecord, outer: Omit<PlacedTool, 'tool'>): PlacedTool[] =>
  listIn(tools).flatMap((tool, i) =>
    isRecord(tool) ? [{ ...outer, tool, param: `${outer.param}.tools[${i}]` }] : [],
  );

/**
 * Converts Responses tools to chat form. The tools of a namespace get joined names. The first tool of a name is
 * used, later ones are ignored. Tools that run at the upstream stay as the client wrote them, for upstreams that may
 * run them. Throws InvalidRequest for a name that is too long, and for nothing else.
 */
export function translateTools(tools: readonly PlacedTool[]): ConvertedTools {
  const converted: ConvertedTools = { tools: [], declared: new Map(), byItem: new Map(), dropped: 0 };
  for (const tool of tools) addTool(converted, tool, undefined);
  return converted;
}

function addTool(converted: ConvertedTools, placed: PlacedTool, namespace: string | undefined): void {
  const tool = translateTool(placed.tool);
  const { type, name } = tool;
  const callers = type === 'function' || type === 'custom';
  if (callers || type === 'namespace') checkNameLength({ name }, placed.param);
  const named = typeof name === 'string' && name !== '';
  const push = (one: ChatTool): void => {
    converted.tools.push(one);
    if (placed.item) converted.byItem.set(one, placed.item);
  };
  if (named && type === 'namespace' && namespace === undefined && Array.isArray(tool['tools'])) {
    for (const one of describeGroup(listInnerTools(tool, placed), tool['description']))
      addTool(converted, one, name);
    return;
  }
  if (!named || !callers) {
    converted.dropped += 1;
    const hosted = typeof type === 'string' && !callers && type !== 'namespace' && namespace === undefined;
    if (hosted) push({ ...placed.tool, type });
    return;
  }
  const flat = flattenToolName(name, namespace);
  if (converted.declared.has(flat)) return;
  converted.declared.set(flat, { kind: type, name, namespace, isAsync: tool['async'] === true });
  push(type === 'function' ? readFunctionTool(flat, tool) : readCustomTool(flat, tool));
}

/** Puts a group's description before that of its first tool, because no other form has groups. */
function describeGroup([first, ...others]: PlacedTool[], description: unknown): PlacedTool[] {
  if (!first || typeof description !== 'string' || description === '') return first ? [first, ...others] : [];
  const tool = translateTool(first.tool);
  const texts = [description, tool['description']].filter((text) => typeof text === 'string' && text !== '');
  return [{ ...first, tool: { ...tool, description: texts.join('\n\n') } }, ...others];
}

/**
 * Converts a tool to Responses form: some clients send its fields under `function`, as in Chat Completions.
 */
export function translateTool(tool: JsonRecord): JsonRecord {
  const inner = tool['function'] ?? tool['custom'];
  const fields = isRecord(inner) && tool['name'] === undefined ? inner : tool;
  const beside = tool['async'] === true ? { async: true } : {};
  return { ...fields, ...beside, type: tool['type'] ?? 'function' };
}

const readFunctionTool = (name: string, tool: JsonRecord): ChatTool => ({
  type: 'function',
  function: {
    name,
    ...(typeof tool['description'] === 'string' && { description: tool['description'] }),
    parameters: isRecord(tool['parameters']) ? tool['parameters'] : { type: 'object', properties: {} },
    ...(typeof tool['strict'] === 'boolean' && { strict: tool['strict'] }),
  },
  ...(tool['async'] === true && { async: true }),
});

/** Responses has the fields of a grammar beside `type`; chat has them under `grammar`, and so do some clients here. */
function readCustomTool(name: string, { description, format, async: isAsync }: JsonRecord): ChatTool {
  const { grammar: nested, ...own } = asRecord(format);
  const { type, definition, syntax } = { ...own, ...asRecord(nested) };
  const grammar = { type: 'grammar', grammar: { definition, syntax } };
  return {
    type: 'custom',
    custom: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(type === 'grammar' && typeof definition === 'string' && { format: grammar }),
      ...(type === 'text' && { format: { type } }),
    },
    ...(isAsync === true && { async: true }),
  };
}

/**
 * Returns the tools of the canonical call with the choice among them. An unknown tool becomes `auto`. A hosted tool stays, for
 * upstreams that may run it. A list of allowed tools without a known name allows none.
 */
export function selectTools(choice: unknown, { tools, declared }: ConvertedTools): Partial<ChatRequest> {
  if (tools.length === 0) return {};
  if (choice === 'none' || choice === 'required') return { tools, tool_choice: choice };
  if (choice === 'any') return { tools, tool_choice: 'required' };
  if (!isRecord(choice)) return { tools, tool_choice: 'auto' };
  if (choice['type'] !== 'allowed_tools') {
    const isHosted = typeof choice['type'] === 'string' && !callersTypes.has(choice['type']);
    return { tools, tool_choice: findNamedTool(choice, declared) ?? (isHosted ? choice : 'auto') };
  }
  const inner = isRecord(choice['allowed_tools']) ? choice['allowed_tools'] : choice;
  const allowed = recordsIn(inner['tools']).flatMap((entry) => findNamedTool(entry, declared) ?? []);
  if (allowed.length === 0) return {};
  const mode = inner['mode'] === 'required' ? 'required' : 'auto';
  return { tools, tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } } };
}

/** Types of tools that the caller runs. */
export const callersTypes: ReadonlySet<string> = new Set(['function', 'custom']);

/** A declared tool in the form of a choice; undefined if no tool has the name. */
function findNamedTool(
  source: JsonRecord,
  declared: ReadonlyMap<string, DeclaredTool>,
): JsonRecord | undefined {
  const { name: plain, namespace } = translateTool(source);
  const name = typeof plain === 'string' ? flattenToolName(plain, namespace) : '';
  const kind = declared.get(name)?.kind;
  return kind && { type: kind, [kind]: { name } };
}

/**
 * The name of a tool for an upstream: `namespace__name`, or `name` if there is no namespace, reduced to the
 * characters and the length that upstreams accept. The same tool gets the same name in every turn of a conversation.
 */
export function flattenToolName(name: string, namespace: unknown): string {
  const whole = typeof namespace === 'string' && namespace !== '' ? `${namespace}__${name}` : name;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (plain === whole && whole.length <= calledNameMax) return whole;
  const mark = `_${fingerprint(whole)}`;
  return plain.slice(0, calledNameMax - mark.length) + mark;
}

/** Refuses a longer name than OpenAI accepts. `param`: the path of the object with the name. */
export function checkNameLength(source: { name?: unknown; namespace?: unknown }, param: string): void {
  for (const field of ['name', 'namespace'] as const) {
    const value = source[field];
    if (typeof value !== 'string' || value.length <= calledNameMax) continue;
    throw new InvalidRequest(
      'string_above_max_length',
      `${param}.${field}`,
      `'${param}.${field}' has ${value.length} characters; at most ${calledNameMax} are accepted.`,
    );
  }
}
