/** Converts tools and the tool choice. Tools whose input is free text become functions with one text `input`. */
import type { CarriedItems, ChatRequest, ChatTool } from '../../../wire/canonical-call.ts';
import { asRecord, isRecord, listIn, type JsonRecord } from '../../../wire/json.ts';
import { wrapTool } from '../../request-fields.ts';
import { convertSchema } from './grammar-schema.ts';
import { cacheControlOf, type MessagesTurn } from './conversation.ts';

interface ToolFields {
  /** As sent, in the order of `sent`. */
  tools: JsonRecord[];
  sent: readonly ChatTool[];
  /** Undefined means auto. */
  choice: JsonRecord | undefined;
  /** The choice that was sent instead of the requested one. */
  changedChoice: 'auto' | undefined;
  wrapped: ReadonlySet<string>;
  dropped: string[];
}

/**
 * A refused forced choice becomes `auto`. If it names a tool, only that tool is sent, since a client that names one
 * can often read no other answer. That changes the prefix of the conversation: the call misses the cache, and the
 * vendor drops thinking that is bound to the prefix (`block_binding`). If any tool will do, all stay. `allow`: hosted
 * tools that are sent, by type. `forcesCalls`: the model accepts a forced choice.
 */
export function convertTools(
  request: ChatRequest,
  { allow, forcesCalls }: { allow: readonly string[]; forcesCalls: boolean },
): ToolFields {
  const choice = readChoice(request.tool_choice);
  const known = (request.tools ?? []).filter(
    (tool) => nameOf(tool) !== undefined || allow.includes(tool.type),
  );
  const dropped = known.length < (request.tools ?? []).length ? ['tools'] : [];
  if (choice.isForeign) dropped.push('tool_choice');
  const allowed = choice.allowed ? known.filter((tool) => choice.allowed?.has(nameOf(tool) ?? '')) : known;
  // A choice of a dropped tool leaves the model free.
  const named = allowed.some((tool) => nameOf(tool) === choice.name) ? choice.name : undefined;
  const isForced = choice.mode === 'required' && (choice.name === undefined || named !== undefined);
  const isRefused = isForced && !forcesCalls;
  const sent = isRefused && named !== undefined ? allowed.filter((tool) => nameOf(tool) === named) : allowed;
  const wrapped = new Set(sent.filter(({ type }) => type === 'custom').map((tool) => nameOf(tool) ?? ''));
  const forced = named === undefined ? 'any' : 'tool';
  const type = isForced && !isRefused ? forced : choice.mode === 'none' ? 'none' : 'auto';
  const converted = convertToolList(sent);
  dropped.push(...converted.dropped);
  const isSerial = request.parallel_tool_calls === false && type !== 'none';
  const name = type === 'tool' ? { name: named } : {};
  const sentChoice = { type, ...name, ...(isSerial && { disable_parallel_tool_use: true }) };
  const isDefault = type === 'auto' && !isSerial;
  const isChanged = type === 'auto' && (choice.mode === 'required' || choice.isForeign === true);
  return {
    tools: converted.tools,
    sent,
    choice: sent.length === 0 || isDefault ? undefined : sentChoice,
    changedChoice: isChanged && sent.length > 0 ? 'auto' : undefined,
    wrapped,
    dropped,
  };
}

/**
 * Sends the tools that an item added at its position, as the content of a system turn: at the front they would change
 * the prefix that thinking is bound to. Source: "Mid-conversation tool changes", the vendor's page of November 2026.
 */
export function placeTools(
  { tools, sent }: Pick<ToolFields, 'tools' | 'sent'>,
  turns: readonly MessagesTurn[],
  items: CarriedItems | undefined,
): { tools: JsonRecord[]; turns: MessagesTurn[]; isAny: boolean } {
  const systemBlocks = new Set(turns.flatMap(({ role, content }) => (role === 'system' ? content : [])));
  const blockOf = (index: number): JsonRecord | undefined => {
    const tool = sent[index];
    const item = tool && items?.tools.get(tool);
    return item && systemBlocks.has(item) ? item : undefined;
  };
  const byItem = Map.groupBy(tools, (_, index) => blockOf(index));
  const newTurns = turns.flatMap(({ role, content }): MessagesTurn[] => {
    if (role !== 'system') return [{ role, content }];
    const added = content
      .flatMap((item) => byItem.get(item) ?? [])
      .map((definition) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition } }));
    return added.length > 0 ? [{ role, content: added }] : [];
  });
  const own = byItem.get(undefined) ?? [];
  return { tools: own, turns: newTurns, isAny: own.length < tools.length };
}

export const asksForCall = ({ tool_choice: choice }: ChatRequest): boolean =>
  readChoice(choice).mode === 'required';

interface Choice {
  mode: 'auto' | 'none' | 'required';
  /** The one tool that has to be called. */
  name?: string | undefined;
  /** The only names that may be called. */
  allowed?: ReadonlySet<string>;
  /** It names a hosted tool. */
  isForeign?: boolean;
}

function readChoice(value: unknown): Choice {
  if (value === 'none' || value === 'required') return { mode: value };
  if (!isRecord(value)) return { mode: 'auto' };
  const { type } = value;
  if (type === 'function' || type === 'custom')
    return { mode: 'required', name: readChosenName(value) ?? '' };
  if (type !== 'allowed_tools') return { mode: 'auto', isForeign: true };
  const { mode, tools } = asRecord(value['allowed_tools']);
  const names = listIn(tools).map((tool) => readChosenName(asRecord(tool)) ?? '');
  return { mode: mode === 'required' ? 'required' : 'auto', allowed: new Set(names) };
}

/** The name in `{type, function: {name}}`, `{type, custom: {name}}` or, as some clients write it, `{type, name}`. */
function readChosenName(value: JsonRecord): string | undefined {
  const name = asRecord(value['function'])['name'] ?? asRecord(value['custom'])['name'] ?? value['name'];
  return typeof name === 'string' ? name : undefined;
}

/** Undefined for hosted tools. */
function nameOf(tool: ChatTool): string | undefined {
  if (tool.type === 'function') return tool.function?.name;
  return tool.type === 'custom' ? readChosenName(tool) : undefined;
}

/** The vendor's limits for strict tools in one request; more is a 400. */
const strictLimits = { tools: 20, optionalProperties: 24, unions: 16 };

/** A tool that cannot be strict is sent as a plain one. */
function convertToolList(tools: readonly ChatTool[]): { tools: JsonRecord[]; dropped: Set<string> } {
  const dropped = new Set<string>();
  const left = { ...strictLimits };
  const sent = tools.map((tool) => {
    const plain = convertTool(tool);
    if (tool.function?.strict !== true || tool.type === 'custom') return plain;
    const grammar = convertSchema(plain['input_schema']);
    const fits =
      grammar &&
      left.tools > 0 &&
      grammar.optionalProperties <= left.optionalProperties &&
      grammar.unions <= left.unions;
    if (!fits) {
      dropped.add('strict');
      return plain;
    }
    left.tools -= 1;
    left.optionalProperties -= grammar.optionalProperties;
    left.unions -= grammar.unions;
    for (const keyword of grammar.moved) dropped.add(`tools.${keyword}`);
    return { ...plain, input_schema: grammar.schema, strict: true };
  });
  return { tools: sent, dropped };
}

function convertTool(tool: ChatTool): JsonRecord {
  const cache = cacheControlOf(tool);
  const { function: called } = tool.type === 'custom' ? wrapTool(tool) : tool;
  if (!called) return { ...tool };
  const { name, description, parameters } = called;
  return {
    name,
    ...(description ? { description } : {}),
    input_schema: { type: 'object', ...(parameters ?? { properties: {} }) },
    ...cache,
    ...cacheControlOf(called),
  };
}
