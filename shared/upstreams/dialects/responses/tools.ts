/** Converts tools and the tool choice to the form of Responses. */
import type { CanonicalCall, ChatTool } from '../../../wire/canonical-call.ts';
import { asRecord, isRecord, recordsIn, removeNulls, type JsonRecord } from '../../../wire/json.ts';
import { completeSchema, toolNameOf, wrapTool } from '../../request-fields.ts';
import type { RequestSettings } from '../../dialect.ts';

interface SentTools {
  /** Without tools no choice is sent. */
  tools: JsonRecord[] | undefined;
  choice: JsonRecord;
  changedChoice: string | undefined;
  droppedHosted: boolean;
  wrapped: Set<string>;
  /**
   * Tools that items of the input declare. They stay at their position, so that what was cached before them stays
   * valid.
   */
  itemTools: Map<JsonRecord, JsonRecord[]>;
}

/** `ownForm`: the client wrote Responses, so hosted tools have the form of this upstream. */
export function convertTools(
  { request, items }: CanonicalCall,
  settings: Pick<RequestSettings, 'allow' | 'quirks'>,
  ownForm: boolean,
): SentTools {
  const wraps = settings.quirks.supportsCustomTools === false;
  const wrapped = new Set<string>();
  const own: JsonRecord[] = [];
  const itemTools = new Map<JsonRecord, JsonRecord[]>();
  let droppedHosted = false;
  for (const tool of request.tools ?? []) {
    const item = items?.tools.get(tool);
    const tools = item ? (itemTools.get(item) ?? []) : own;
    if (item) itemTools.set(item, tools);
    if (tool.type === 'function') tools.push(convertFunction(tool, ownForm));
    else if (tool.type === 'custom' && wraps) {
      tools.push(convertFunction({ ...wrapTool(tool), ...copyAsync(tool) }, false));
      wrapped.add(toolNameOf(tool) ?? '');
    } else if (tool.type === 'custom')
      tools.push({ ...convertCustomTool(asRecord(tool['custom'])), ...copyAsync(tool) });
    else if (ownForm && settings.allow.includes(tool.type)) tools.push(tool);
    else droppedHosted = true;
  }
  const tools = own.length > 0 ? own : undefined;
  const shared = { droppedHosted, wrapped, itemTools, tools };
  const all = [...own, ...[...itemTools.values()].flat()];
  if (all.length === 0) return { ...shared, choice: {}, changedChoice: undefined };
  const { tool_choice: asked, parallel_tool_calls: parallel } = request;
  // Models refuse forced calls only while they think.
  const { supportsForcedCalls, efforts } = settings.quirks;
  const isOff = request.reasoning_effort === 'none' && (efforts?.includes('none') ?? true);
  const forces = supportsForcedCalls || isOff;
  const chosen = convertChoice(asked, all);
  const choice = forces ? chosen : replaceForcedChoice(chosen);
  return {
    ...shared,
    choice: removeNulls({ tool_choice: choice, parallel_tool_calls: parallel }),
    changedChoice: (choice === 'auto' && asked !== 'auto') || choice !== chosen ? 'auto' : undefined,
  };
}

const copyDescription = ({ description }: JsonRecord): JsonRecord =>
  typeof description === 'string' ? { description } : {};

/**
 * Functions are strict by default here, but not in Chat Completions. So the default of a chat client is made explicit.
 */
function convertFunction(tool: ChatTool, ownForm: boolean): JsonRecord {
  const called: JsonRecord = tool.function ?? {};
  const strict = typeof called['strict'] === 'boolean' ? called['strict'] : ownForm ? undefined : false;
  return {
    type: 'function',
    name: called['name'],
    ...copyDescription(called),
    parameters: completeSchema(asRecord(called['parameters'] ?? { type: 'object' })),
    ...(strict !== undefined && { strict }),
    ...copyAsync(tool),
  };
}

const copyAsync = (tool: ChatTool): JsonRecord => (tool['async'] === true ? { async: true } : {});

function convertCustomTool(custom: JsonRecord): JsonRecord {
  const format = asRecord(custom['format']);
  const grammar = format['grammar'];
  const sent = isRecord(grammar)
    ? { type: 'grammar', syntax: grammar['syntax'], definition: grammar['definition'] }
    : format;
  return {
    type: 'custom',
    name: custom['name'],
    ...copyDescription(custom),
    ...(typeof format['type'] === 'string' && { format: sent }),
  };
}

/** A choice of a dropped tool becomes `auto`. A list of allowed tools without any sent tool allows none. */
function convertChoice(choice: unknown, tools: readonly JsonRecord[]): unknown {
  if (!isRecord(choice)) return typeof choice === 'string' ? choice : undefined;
  const { type } = choice;
  if (type !== 'allowed_tools') return findTool(choice, tools) ?? 'auto';
  const inner = asRecord(choice['allowed_tools']);
  const allowed = recordsIn(inner['tools']).flatMap((tool) => findTool(tool, tools) ?? []);
  if (allowed.length === 0) return 'none';
  return { type, mode: inner['mode'] === 'required' ? 'required' : 'auto', tools: allowed };
}

function replaceForcedChoice(choice: unknown): unknown {
  if (!isRecord(choice)) return choice === 'required' ? 'auto' : choice;
  if (choice['mode'] === 'auto') return choice;
  const tools = choice['type'] === 'allowed_tools' ? choice['tools'] : [choice];
  return { type: 'allowed_tools', mode: 'auto', tools };
}

/** Finds the sent tool of a choice in chat form: by its name, or a hosted one by its type. */
function findTool(choice: JsonRecord, tools: readonly JsonRecord[]): JsonRecord | undefined {
  const { type } = choice;
  const { name } = asRecord(choice[String(type)]);
  const found = tools.find((tool) =>
    typeof name === 'string' ? tool['name'] === name : tool['type'] === type,
  );
  if (!found) return undefined;
  return typeof name === 'string' ? { type: found['type'], name } : choice;
}
