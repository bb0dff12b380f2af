/** Converts tools and the choice among them. A tool that the caller runs is never left out. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import type { ChatTool } from '../../../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { toolName, wrappedTool } from '../../calls/custom-tools.ts';
import type { RequestSettings } from '../../dialect.ts';
import { callersTools } from '../../quirks.ts';
import { knownTool } from './fields.ts';

export interface SentTools {
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
  const chosen = wraps ? allowed(request.tool_choice, known) : asIs(request.tool_choice, known);
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

interface Choice {
  tools: readonly ChatTool[];
  choice: unknown;
}

const asIs = (choice: unknown, tools: readonly ChatTool[]): Choice => ({
  tools,
  choice: choice ?? undefined,
});

/** Leaves only the tools that a list of allowed tools names; the others could not be called. */
function allowed(choice: unknown, tools: readonly ChatTool[]): Choice {
  if (!isRecord(choice) || choice['type'] !== 'allowed_tools') return asIs(choice, tools);
  const { mode, tools: entries } = asRecord(choice['allowed_tools']);
  const names = new Set((Array.isArray(entries) ? entries.filter(isRecord) : []).map(entryName));
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
