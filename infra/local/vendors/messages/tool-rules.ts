/** Anthropic's rejections of messages, tools and tool results. */
import type { Rules } from '../vendor.ts';
import type { Block } from './body.ts';
import { blocksOf, listBlocks, type MessagesCall } from './request.ts';

const idPattern = /^[a-zA-Z0-9_-]{1,64}$/;
const namePattern = /^[a-zA-Z0-9_-]{1,128}$/;

const listMessageBlocks = ({ body }: MessagesCall, message: number): Block[] =>
  blocksOf(body.messages[message]?.content ?? '');

const idsOf = (call: MessagesCall, message: number): string[] =>
  listMessageBlocks(call, message).flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));

const listAnswers = (call: MessagesCall, message: number): string[] =>
  listMessageBlocks(call, message).flatMap((block) =>
    block.type === 'tool_result' ? [block.tool_use_id] : [],
  );

export const messageRules: Rules<MessagesCall> = {
  // The first message is the user's, and there is one [docs/api/messages].
  'first-message'({ body: { messages } }) {
    if (messages.length === 0) return 'messages: at least one message is required';
    return messages[0]?.role !== 'user' && 'messages: first message must use the "user" role';
  },
  // Models since Opus 4.8 take texts of the system after a turn of the user, older ones none
  // [docs/about-claude/models/whats-new-claude-4-8].
  'system-turns'({ body: { messages }, can }) {
    const index = messages.findIndex(({ role }) => role === 'system');
    if (index < 0) return undefined;
    if (!can.systemTurns) return `messages.${index}: role 'system' is not supported on this model`;
    const misplaced = messages.findIndex(
      ({ role, content }, at) =>
        role === 'system' &&
        (messages[at - 1]?.role !== 'user' ||
          messages[at + 1]?.role === 'user' ||
          blocksOf(content).some(({ type }) => type !== 'text' && type !== 'tool_addition')),
    );
    return (
      misplaced >= 0 &&
      `messages.${misplaced}: a system message has texts or tools and stands between a user message and an answer`
    );
  },
  // Newer models take no assistant message at the end [docs/models/opus-5-5/migration-guide].
  'no-prefill': ({ body: { messages }, can }) =>
    !can.prefill &&
    messages.at(-1)?.role === 'assistant' &&
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  // Messages and texts are not empty [docs/api/messages].
  'empty-content'(call) {
    const { messages, system = 'none' } = call.body;
    const empty = messages.findIndex(({ content }) => content.length === 0);
    if (empty >= 0) return `messages.${empty}: all messages must have non-empty content`;
    const texts = [...blocksOf(system), ...listBlocks(call).map(({ block }) => block)];
    return (
      texts.some((block) => block.type === 'text' && block.text === '') &&
      'messages: text content blocks must be non-empty'
    );
  },
  // Since 2026-10-21 an assistant message has no documents, and user texts no citations
  // [apidog.com/blog/claude-api-version-2026-10-21/, 2026-11-02].
  'assistant-documents'(call) {
    const found = listBlocks(call).find(
      ({ role, block }) =>
        (role === 'assistant' && block.type === 'document') ||
        (role === 'user' && block.type === 'text' && (block.citations?.length ?? 0) > 0),
    );
    const what = found?.block.type === 'document' ? 'document blocks are' : 'citations are';
    return (
      call.isNewer &&
      found &&
      `messages.${found.message}.content.${found.index}: ${what} not permitted in ${found.role} messages`
    );
  },
  // Names of tools keep to a pattern and are unique [docs/agents-and-tools/tool-use/implement-tool-use].
  'tool-names'({ body: { tools = [] } }) {
    const wrong = tools.findIndex(({ name }) => !namePattern.test(name));
    if (wrong >= 0) return `tools.${wrong}.custom.name: String should match pattern '${namePattern.source}'`;
    return new Set(tools.map(({ name }) => name)).size < tools.length && 'tools: Tool names must be unique.';
  },
  // A result may only refer to known tools [anthropics/claude-code/issues/81863, 2026-07-28].
  'tool-references'(call) {
    const names = new Set((call.body.tools ?? []).map(({ name }) => name));
    const lost = listBlocks(call)
      .flatMap(({ block }) =>
        block.type === 'tool_result' && Array.isArray(block.content) ? block.content : [],
      )
      .find((part) => part.type === 'tool_reference' && !names.has(part.tool_name));
    return (
      lost?.type === 'tool_reference' && `Tool reference '${lost.tool_name}' not found in available tools`
    );
  },
  // A tool choice comes with tools [docs/agents-and-tools/tool-use/implement-tool-use].
  'choice-with-tools': ({ body: { tools = [], tool_choice: choice } }) =>
    choice !== undefined &&
    tools.length === 0 &&
    'tool_choice: tool_choice may only be specified while providing tools.',
  // Ids of calls keep to a pattern [upstreams.md §3: call ids].
  'tool-use-ids'(call) {
    const wrong = listBlocks(call).find(
      ({ block }) => block.type === 'tool_use' && !idPattern.test(block.id),
    );
    return (
      wrong &&
      `messages.${wrong.message}.content.${wrong.index}.tool_use.id: String should match pattern '${idPattern.source}'`
    );
  },
  // Ids of calls are unique in the conversation [anthropics/claude-code/issues (messages: `tool_use` ids must be unique)].
  'unique-ids'(call) {
    const ids = listBlocks(call).flatMap(({ block }) => (block.type === 'tool_use' ? [block.id] : []));
    return new Set(ids).size < ids.length && 'messages: `tool_use` ids must be unique';
  },
  // Each call is answered in the next message [anthropics/claude-code/issues/1831, 2025-06-09].
  'calls-answered'(call) {
    for (const index of call.body.messages.keys()) {
      const answered = listAnswers(call, index + 1);
      const open = idsOf(call, index).filter((id) => !answered.includes(id));
      if (open.length > 0)
        return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    }
    return undefined;
  },
  // Each result belongs to a call of the message before it [anthropics/claude-code/issues/64383, 2026-06-01].
  'results-asked'(call) {
    for (const { block, message, index } of listBlocks(call))
      if (block.type === 'tool_result' && !idsOf(call, message - 1).includes(block.tool_use_id))
        return `messages.${message}.content.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${block.tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    return undefined;
  },
  // Results stand before other content of their message [docs/agents-and-tools/tool-use/implement-tool-use].
  'results-first'(call) {
    const late = listBlocks(call).find(
      ({ block, message, index }) =>
        block.type === 'tool_result' &&
        blocksOf(call.body.messages[message]?.content ?? '')
          .slice(0, index)
          .some(({ type }) => type !== 'tool_result'),
    );
    const ids = late ? idsOf(call, late.message - 1) : [];
    return (
      late &&
      `messages.${late.message - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
    );
  },
};
