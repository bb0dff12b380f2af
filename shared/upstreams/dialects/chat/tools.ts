/** Converts tools and the tool choice to the form of Chat Completions. A tool that the caller runs is never dropped. */
import type { CanonicalCall, ChatTool } from '../../../wire/canonical-call.ts';
import { asRecord, isRecord, recordsIn, type JsonRecord } from '../../../wire/json.ts';
import type { RequestSettings } from '../../dialect.ts';
import { callerToolTypes, type Quirks } from '../../quirks.ts';
import { completeSchema, toolNameOf, wrapTool } from '../../request-fields.ts';

interface SentTools {
  /** Without tools no choice is sent. */
  tools: ChatTool[] | undefined;
  choice: unknown;
  /** Set if the tool of the choice was left out. */
  changedChoice: 'auto' | undefined;
  /** Custom tools and their calls are sent as functions. */
  wraps: boolean;
  wrapped: ReadonlySet<string>;
  dropped: string[];
}

export function convertTools(
  { form, request, unknown }: CanonicalCall,
  settings: RequestSettings,
): SentTools {
  const { quirks, allow } = settings;
  // Few compatible servers know custom tools, and the others refuse them.
  const wraps = quirks.supportsCustomTools !== true;
  const declared = request.tools ?? [];
  const known = declared.filter(({ type }) => callerToolTypes.has(type) || allow.includes(type));
  // An upstream with custom tools is like OpenAI and knows lists of allowed tools; few others do.
  const asked = limitToAllowedTools(request.tool_choice, known, wraps);
  const thinks = asRecord(settings.set['thinking'] ?? unknown['thinking'])['type'] !== 'disabled';
  const chosen = quirks.supportsForcedCalls || !thinks ? asked : replaceForcedChoice(asked);
  const isCustom = (tool: ChatTool): boolean => wraps && tool.type === 'custom';
  const tools = chosen.tools.map((tool) => {
    const { async: isAsync, ...plain } = isCustom(tool) ? wrapTool(tool) : tool;
    const { function: called } = plain;
    const schema = called?.parameters;
    // A chat client's own schema is sent unchanged.
    const isWhole = form === 'chat' || !schema;
    const whole = isWhole ? plain : { ...plain, function: { ...called, parameters: completeSchema(schema) } };
    const sent = form === 'chat' && isAsync !== undefined ? { ...whole, async: isAsync } : whole;
    return callerToolTypes.has(sent.type) ? filterTool(sent, quirks) : sent;
  });
  const wrapped = new Set(chosen.tools.filter(isCustom).flatMap((tool) => toolNameOf(tool) ?? []));
  const dropped = known.length < declared.length ? ['tools'] : [];
  const sent = { wraps, wrapped, dropped, changedChoice: undefined };
  if (tools.length === 0) return { ...sent, tools: undefined, choice: undefined };
  const choice = convertChoice(chosen.choice, wraps, allow);
  const changed = choice === 'auto' && (isRecord(chosen.choice) || chosen !== asked);
  return { ...sent, tools, choice, changedChoice: changed ? 'auto' : undefined };
}

interface ChosenTools {
  tools: readonly ChatTool[];
  choice: unknown;
}

/**
 * If the model refuses to be forced, only the named tool is sent, since a client that names one can often read no
 * other answer.
 */
function replaceForcedChoice(asked: ChosenTools): ChosenTools {
  const { tools, choice } = asked;
  if (choice === 'required') return { tools, choice: 'auto' };
  if (!isRecord(choice) || !callerToolTypes.has(String(choice['type']))) return asked;
  const named = tools.filter((tool) => toolNameOf(tool) === readEntryName(choice));
  return named.length > 0 ? { tools: named, choice: 'auto' } : asked;
}

/** For an upstream that knows no list of allowed tools, sends only the tools on the list. */
function limitToAllowedTools(choice: unknown, tools: readonly ChatTool[], wraps: boolean): ChosenTools {
  if (!wraps || !isRecord(choice) || choice['type'] !== 'allowed_tools')
    return { tools, choice: choice ?? undefined };
  const { mode, tools: entries } = asRecord(choice['allowed_tools']);
  const names = new Set(recordsIn(entries).map(readEntryName));
  const left = tools.filter((tool) => names.has(toolNameOf(tool)));
  return { tools: left, choice: mode === 'required' ? 'required' : 'auto' };
}

const readEntryName = (entry: JsonRecord): unknown =>
  asRecord(entry[entry['type'] === 'custom' ? 'custom' : 'function'])['name'];

/** A choice of a dropped tool becomes `auto`. */
function convertChoice(choice: unknown, wraps: boolean, allow: readonly string[]): unknown {
  if (!isRecord(choice)) return choice;
  const type = String(choice['type']);
  if (type === 'custom' && wraps)
    return { type: 'function', function: { name: asRecord(choice['custom'])['name'] } };
  return callerToolTypes.has(type) || type === 'allowed_tools' || allow.includes(type) ? choice : 'auto';
}

const functionFields = ['name', 'description', 'parameters', 'strict'];

/** For an upstream that refuses unknown fields: a tool has one field beside its type, named like the type. */
function filterTool<Tool extends JsonRecord & { type: string }>(
  tool: Tool,
  { acceptedFields }: Quirks,
): Tool {
  if (!acceptedFields) return tool;
  const known = { ...pickFields(tool, [tool.type]), type: tool.type };
  const { function: declared } = tool;
  return {
    ...known,
    ...(isRecord(declared) && tool.type === 'function' && { function: pickFields(declared, functionFields) }),
  } as Tool;
}

export const pickFields = (source: JsonRecord, names: readonly string[]): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([field]) => names.includes(field)));
