/**
 * The body of a client that wrote Messages, for an upstream that speaks it: it goes up as it came, block by block and byte by byte, but
 * for the model, the limit, what the channel's row sets, and what money and isolation need. No breakpoint is added: this
 * client places its own. Thinking that the relay sealed for its client is left out, since no vendor knows its signature.
 */
import type { CanonicalCall, ChatMessage } from '../../../wire/canonical-call.ts';
import { sealPrefix } from '../../../wire/ids.ts';
import {
  asRecord,
  isRecord,
  listIn,
  recordsIn,
  textIn,
  withoutNulls,
  type JsonRecord,
} from '../../../wire/json.ts';
import type { RequestSettings, SentBody } from '../../dialect.ts';
import { isCallersTool } from '../../quirks.ts';
import { setByRow } from '../../request-parts.ts';
import type { ModelRules } from './model-rules.ts';

interface NativeFacts {
  settings: RequestSettings;
  rules: ModelRules;
  outputTokensMax: number;
}

/** Undefined: the client wrote another form. */
export function nativeBody(
  { native, request, unknown, served }: CanonicalCall,
  { settings, rules, outputTokensMax }: NativeFacts,
): Pick<SentBody, 'body' | 'dropped'> | undefined {
  if (!native) return undefined;
  const dropped: string[] = [];
  const lose = (name: string): void => void dropped.push(name);
  const { system, messages, tools, metadata, service_tier: tier } = native.body;
  const sentTools = permittedTools(tools, settings.allow);
  if (sentTools.length < listIn(tools).length) lose('tools');
  const added = request.messages.filter((message) => !native.known.has(message));
  const turns = withAdded(sentTurns(recordsIn(messages), settings, lose), added);
  const choice = asRecord(served?.['tool_choice']);
  const isChoiceLost = choice['type'] === 'tool' && !sentTools.some(({ name }) => name === choice['name']);
  const clearing = native.clearing && { context_management: native.clearing };
  const body: JsonRecord = {
    model: settings.model,
    ...(sentTools.length > 0 && { tools: sentTools }),
    ...systemField(system, added),
    messages: turns,
    max_tokens: outputTokensMax,
    ...served,
    ...clearing,
    ...unknown,
    ...(request.service_tier !== undefined && { service_tier: tier }),
    ...((isRecord(metadata) || request.user) && {
      metadata: { ...asRecord(metadata), ...withoutNulls({ user_id: request.user || undefined }) },
    }),
  };
  if ('tool_choice' in body && (isChoiceLost || sentTools.length === 0)) {
    delete body['tool_choice'];
    lose('tool_choice');
  }
  const wasThinking = isRecord(body['thinking']) && body['thinking']['type'] !== 'disabled';
  if (wasThinking && lacksThinking(turns, { wasStripped: dropped.includes('reasoning'), rules, settings })) {
    if (settings.quirks.wantsBack === 'thinking' && rules.off !== 'always')
      body['thinking'] = { type: rules.off === 'omit' ? 'disabled' : rules.off };
    else delete body['thinking'];
    lose('thinking');
  }
  leaveOutRefused(body, settings.refusedFeatures ?? []).forEach(lose);
  if (settings.unpricedHour && shortenLifetimes(body)) lose('cache_control.ttl');
  setByRow(body, settings);
  return { body, dropped };
}

function permittedTools(tools: unknown, allow: readonly string[]): JsonRecord[] {
  return recordsIn(tools).filter(({ type }) => isCallersTool(type) || allow.includes(textIn(type)));
}

const isThinkingBlock = ({ type }: JsonRecord): boolean =>
  type === 'thinking' || type === 'redacted_thinking';

const isOurs = ({ signature, data }: JsonRecord): boolean =>
  textIn(signature).startsWith(sealPrefix) || textIn(data).startsWith(sealPrefix);

/** The turns, without thinking that this upstream cannot read. A turn that had nothing else is left out. */
function sentTurns(
  messages: readonly JsonRecord[],
  { without }: RequestSettings,
  lose: (name: string) => void,
): JsonRecord[] {
  const isLost = (block: unknown): boolean =>
    isRecord(block) && isThinkingBlock(block) && (without.has('state') || isOurs(block));
  return messages.flatMap((message) => {
    const { role, content } = message;
    if (role !== 'assistant' || !Array.isArray(content) || !content.some(isLost)) return [message];
    lose('reasoning');
    const left = content.filter((block) => !isLost(block));
    return left.length > 0 ? [{ ...message, content: left }] : [];
  });
}

/** The results of a search, as the relay writes them: before all else, or beside the last words of the user. */
function systemField(system: unknown, added: readonly ChatMessage[]): { system?: unknown } {
  const first = added.filter(({ role }) => role === 'system').map(textBlock);
  if (first.length === 0) return system === undefined ? {} : { system };
  const own = typeof system === 'string' ? [{ type: 'text', text: system }] : listIn(system);
  return { system: [...first, ...own.filter((block) => asRecord(block)['text'] !== '')] };
}

function withAdded(turns: JsonRecord[], added: readonly ChatMessage[]): JsonRecord[] {
  const beside = added.filter(({ role }) => role === 'user').map(textBlock);
  const last = turns.findLastIndex(({ role }) => role === 'user');
  const turn = turns[last];
  if (beside.length === 0 || !turn) return turns;
  const content = textOrBlocks(turn['content']);
  const results = content.filter((block) => asRecord(block)['type'] === 'tool_result');
  const others = content.filter((block) => asRecord(block)['type'] !== 'tool_result');
  return turns.with(last, { ...turn, content: [...results, ...beside, ...others] });
}

const textOrBlocks = (content: unknown): unknown[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listIn(content);

const textBlock = ({ content }: ChatMessage): JsonRecord => ({ type: 'text', text: textIn(content) });

/**
 * Whether the call goes on in a loop of tools whose last turn has lost its thinking, which a model that is given a budget
 * refuses, as do servers that want the thinking of every turn back.
 */
function lacksThinking(
  turns: readonly JsonRecord[],
  { wasStripped, rules, settings }: { wasStripped: boolean; rules: ModelRules; settings: RequestSettings },
): boolean {
  const isResult = recordsIn(turns.at(-1)?.['content']).some(({ type }) => type === 'tool_result');
  const before = recordsIn(turns.at(-2)?.['content'])[0];
  const isBare = isResult && !(before && isThinkingBlock(before));
  return isBare && ((wasStripped && rules.thinking === 'budget') || settings.quirks.wantsBack === 'thinking');
}

/** Makes cache writes for an hour those for five minutes. */
export const shortenLifetimes = (body: JsonRecord): boolean =>
  changeBreakpoints(body, ({ ttl, ...short }) => ((ttl ?? '5m') === '5m' ? undefined : short));

/** Copies what it changes; the client's body stays as it is. */
function changeBreakpoints(
  body: JsonRecord,
  change: (control: JsonRecord) => JsonRecord | undefined,
): boolean {
  let any = false;
  const changed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(changed);
    if (!isRecord(value)) return value;
    const control = isRecord(value['cache_control']) ? change(value['cache_control']) : undefined;
    any ||= control !== undefined;
    const inner = ['content', 'source']
      .filter((field) => typeof value[field] === 'object')
      .map((field) => [field, changed(value[field])] as const);
    return { ...value, ...Object.fromEntries(inner), ...(control && { cache_control: control }) };
  };
  for (const field of ['tools', 'system', 'messages']) if (field in body) body[field] = changed(body[field]);
  const { cache_control: own } = asRecord(changed({ cache_control: body['cache_control'] }));
  if (own !== undefined) body['cache_control'] = own;
  return any;
}

/** A model that does not think refuses to clear thinking. */
export function dropThinkingEdits(body: JsonRecord): void {
  const edits = recordsIn(asRecord(body['context_management'])['edits']);
  const left = edits.filter(({ type }) => !textIn(type).startsWith('clear_thinking_'));
  if (left.length === edits.length) return;
  if (left.length > 0) body['context_management'] = { edits: left };
  else delete body['context_management'];
}

/**
 * Fields that do no more than make an answer cheaper or sooner, so that an upstream which does not know them, or refuses their
 * feature, is asked again without them.
 */
export const optionalFields = ['context_management', 'scope', 'defer_loading', 'eager_input_streaming'];

function leaveOutRefused(body: JsonRecord, refused: readonly string[]): string[] {
  const isRefused = (beta: RegExp, field: string): boolean =>
    refused.some((each) => each === field || beta.test(each));
  const left: string[] = [];
  if (isRefused(/^(?:context-management|compact)-/, 'context_management') && 'context_management' in body) {
    delete body['context_management'];
    left.push('context_management');
  }
  if (isRefused(/^prompt-caching-scope-/, 'scope')) {
    const isScoped = changeBreakpoints(body, ({ scope, ...own }) => (scope === undefined ? undefined : own));
    if (isScoped) left.push('cache_control.scope');
  }
  for (const [beta, field] of toolFeatures) {
    const tools = recordsIn(body['tools']);
    if (!isRefused(beta, field) || !tools.some((tool) => field in tool)) continue;
    body['tools'] = tools.map(({ [field]: _left, ...tool }) => tool);
    if (field === 'defer_loading') body['messages'] = withoutReferences(body['messages']);
    left.push(`tools.${field}`);
  }
  return left;
}

const toolFeatures: readonly (readonly [beta: RegExp, field: string])[] = [
  [/^(?:advanced-tool-use|tool-search-tool)-/, 'defer_loading'],
  [/^fine-grained-tool-streaming-/, 'eager_input_streaming'],
];

/** Results of searching for tools that were to be loaded later, as words. */
function withoutReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutReferences);
  const { type, content, tool_name: name } = asRecord(value);
  if (type === 'tool_reference') return { type: 'text', text: `Found the tool ${textIn(name)}.` };
  return Array.isArray(content) ? { ...asRecord(value), content: withoutReferences(content) } : value;
}

// Features of the API go up as the client named them, without those of a field that does not go up.

/** What of a body a feature is for, by the names of both. */
const featureFields: readonly (readonly [beta: RegExp, field: RegExp])[] = [
  [/^mcp-client-/, /^mcp_servers$/],
  [/^(?:code-execution|skills)-/, /^(?:container|skills)$/],
  [/^fast-mode-/, /^speed$/],
  [/^compact-/, /^context_management/],
  [/fallback/, /^fallbacks$/],
];

export function sentBetas(
  betas: readonly string[],
  dropped: readonly string[],
  refused: readonly string[],
): string[] {
  const isLost = (beta: string): boolean =>
    featureFields.some(([pattern, field]) => pattern.test(beta) && dropped.some((each) => field.test(each)));
  return betas.filter((beta) => !refused.includes(beta) && !isLost(beta));
}
