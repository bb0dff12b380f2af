/** Leaves out what one upstream does not take, by name, and never what would change the answer's meaning. */
import { asRecord, isRecord, recordsIn, textIn, type JsonRecord } from '../../../wire/json.ts';
import { CannotCarry, type RequestSettings } from '../../dialect.ts';
import {
  echoedFields,
  knownEffort,
  limitFields,
  refusedSampling,
  type Quirks,
  callersTools,
} from '../../quirks.ts';
import type { CanonicalCall, ChatTool } from '../../../wire/canonical-call.ts';
import { toolName, wrappedTool } from '../../request-parts.ts';

interface FittedFields {
  body: JsonRecord;
  /** The names of the fields that were left out. */
  dropped: string[];
  /** The effort that is sent, if it is not the requested one. */
  effort: string | undefined;
}

const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.length === 0);

/** Fields that must not be left out, each unless its value is what holds without it. */
const binding = new Map<string, (value: unknown) => boolean>([
  ['response_format', (value) => asRecord(value)['type'] !== 'text'],
  ['tools', (value) => !isEmpty(value)],
  ['functions', (value) => !isEmpty(value)],
  ['tool_choice', (value) => value !== 'auto'],
  ['stop', (value) => !isEmpty(value)],
  ['n', (value) => value !== 1],
  ...limitFields.map((field): [string, () => boolean] => [field, () => true]),
]);

/** `asked`: all fields but the model and the conversation. Throws CannotCarry. */
export function fittedFields(asked: JsonRecord, { quirks }: RequestSettings): FittedFields {
  const body = { ...asked };
  const dropped: string[] = [];
  const drop = (field: string): void => {
    if (!Object.hasOwn(body, field)) return;
    delete body[field];
    dropped.push(field);
  };
  for (const [field, value] of Object.entries(body)) {
    if (!quirks.fields || quirks.fields.has(field)) continue;
    if (binding.get(field)?.(value) === true)
      throw new CannotCarry(field, `'${field}' is not supported by the upstream.`);
    drop(field);
  }
  for (const field of refusedSampling(body, quirks)) drop(field);

  const requested = body['reasoning_effort'];
  if (typeof requested !== 'string' || !quirks.efforts) return { body, dropped, effort: undefined };
  const effort = knownEffort(requested, quirks.efforts);
  if (effort === undefined) drop('reasoning_effort');
  else body['reasoning_effort'] = effort;
  return { body, dropped, effort: effort === requested ? undefined : effort };
}

const messageFields = ['role', 'content', 'name', 'tool_calls', 'tool_call_id'];
const callFields = ['id', 'type', 'function', 'custom'];
const functionFields = ['name', 'description', 'parameters', 'strict'];

/** A message for an upstream that refuses unknown fields: what it does not know of it and of its parts is left out. */
export function knownMessage(message: JsonRecord, { fields, echoes = echoedFields }: Quirks): JsonRecord {
  if (!fields) return message;
  const { content, tool_calls: calls, ...known } = only(message, [...messageFields, ...echoes]);
  const call = (value: unknown): unknown =>
    isRecord(value) ? only(value, [...callFields, ...echoes]) : value;
  return {
    ...known,
    ...(content !== undefined && { content: Array.isArray(content) ? content.map(knownPart) : content }),
    ...(calls !== undefined && { tool_calls: Array.isArray(calls) ? calls.map(call) : calls }),
  };
}

/** A tool that the caller runs, for such an upstream. */
function knownTool<Tool extends JsonRecord & { type: string }>(tool: Tool, { fields }: Quirks): Tool {
  if (!fields) return tool;
  const known = { ...onlyOwn(tool), type: tool.type };
  const { function: declared } = tool;
  return {
    ...known,
    ...(isRecord(declared) && tool.type === 'function' && { function: only(declared, functionFields) }),
  } as Tool;
}

/** `image/jpg` is no registered type, but a common one. */
function knownPart(part: unknown): unknown {
  if (!isRecord(part)) return part;
  const known = onlyOwn(part);
  const image = asRecord(known['image_url']);
  const url = textIn(image['url']);
  if (!/^data:image\/jpg[;,]/i.test(url)) return known;
  return { ...known, image_url: { ...image, url: `data:image/jpeg${url.slice('data:image/jpg'.length)}` } };
}

/** Parts and tools have one field beside their type, of the type's name. */
const onlyOwn = (source: JsonRecord): JsonRecord => only(source, ['type', String(source['type'])]);

const only = (source: JsonRecord, names: readonly string[]): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([field]) => names.includes(field)));

// Converts tools and the choice among them. A tool that the caller runs is never left out.

interface SentTools {
  /** Undefined: none, so that no choice is sent either. */
  tools: ChatTool[] | undefined;
  choice: unknown;
  /** What the choice became because its tool was left out. */
  changedChoice: 'auto' | undefined;
  /** Custom tools and their calls are sent as functions. */
  wraps: boolean;
  /** The names of the tools that were. */
  wrapped: ReadonlySet<string>;
  dropped: string[];
}

export function chatTools({ request }: CanonicalCall, settings: RequestSettings): SentTools {
  const { quirks, allow } = settings;
  // Few compatible servers know custom tools, and the others refuse them.
  const wraps = quirks.customTools !== true;
  const declared = request.tools ?? [];
  const known = declared.filter(({ type }) => callersTools.has(type) || allow.includes(type));
  // An upstream with custom tools is OpenAI's or like it, and knows a list of allowed tools; few others do.
  const chosen = chosenTools(request.tool_choice, known, wraps);
  const isCustom = (tool: ChatTool): boolean => wraps && tool.type === 'custom';
  const tools = chosen.tools.map((tool) => {
    const sent = isCustom(tool) ? wrappedTool(tool) : tool;
    return callersTools.has(sent.type) ? knownTool(sent, quirks) : sent;
  });
  const wrapped = new Set(chosen.tools.filter(isCustom).flatMap((tool) => toolName(tool) ?? []));
  const dropped = known.length < declared.length ? ['tools'] : [];
  const sent = { wraps, wrapped, dropped, changedChoice: undefined };
  if (tools.length === 0) return { ...sent, tools: undefined, choice: undefined };
  const choice = chatChoice(chosen.choice, wraps, allow);
  const changed = choice === 'auto' && isRecord(chosen.choice);
  return { ...sent, tools, choice, changedChoice: changed ? 'auto' : undefined };
}

/** Of a list of allowed tools that is not sent, leaves only the tools that it names; the others could not be called. */
function chosenTools(
  choice: unknown,
  tools: readonly ChatTool[],
  wraps: boolean,
): { tools: readonly ChatTool[]; choice: unknown } {
  if (!wraps || !isRecord(choice) || choice['type'] !== 'allowed_tools')
    return { tools, choice: choice ?? undefined };
  const { mode, tools: entries } = asRecord(choice['allowed_tools']);
  const names = new Set(recordsIn(entries).map(entryName));
  const left = tools.filter((tool) => names.has(toolName(tool)));
  return { tools: left, choice: mode === 'required' ? 'required' : 'auto' };
}

const entryName = (entry: JsonRecord): unknown =>
  asRecord(entry[entry['type'] === 'custom' ? 'custom' : 'function'])['name'];

/** A choice of a tool that was left out becomes `auto`. */
function chatChoice(choice: unknown, wraps: boolean, allow: readonly string[]): unknown {
  if (!isRecord(choice)) return choice;
  const type = String(choice['type']);
  if (type === 'custom' && wraps)
    return { type: 'function', function: { name: asRecord(choice['custom'])['name'] } };
  return callersTools.has(type) || type === 'allowed_tools' || allow.includes(type) ? choice : 'auto';
}
