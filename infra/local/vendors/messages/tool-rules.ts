import type { Rule } from '../vendor.ts';
import { blocksOf, placedBlocks, type MessagesCall } from './request.ts';
import { invalid } from './rules.ts';

/** What Anthropic refuses of messages, tools and their results. */

const docs = 'https://platform.claude.com/docs/en';
const messagesPage = `${docs}/api/messages`;
const toolsPage = `${docs}/agents-and-tools/tool-use/implement-tool-use`;
const idPattern = /^[a-zA-Z0-9_-]{1,64}$/;
const namePattern = /^[a-zA-Z0-9_-]{1,128}$/;

const idsOf = ({ body }: MessagesCall, message: number): string[] =>
  blocksOf(body.messages[message]?.content ?? '').flatMap((block) =>
    block.type === 'tool_use' ? [block.id] : [],
  );

const answersIn = ({ body }: MessagesCall, message: number): string[] =>
  blocksOf(body.messages[message]?.content ?? '').flatMap((block) =>
    block.type === 'tool_result' ? [block.tool_use_id] : [],
  );

export const messageRules: Rule<MessagesCall>[] = [
  {
    id: 'first-message',
    says: "The first message is the user's, and there is one.",
    source: messagesPage,
    date: '2026-11-21',
    check({ body: { messages } }) {
      if (messages.length === 0) return invalid('messages: at least one message is required');
      return messages[0]?.role !== 'user' && invalid('messages: first message must use the "user" role');
    },
  },
  {
    id: 'system-turns',
    says: 'Models since Opus 4.8 take texts of the system after a turn of the user, older ones none.',
    source: `${docs}/about-claude/models/whats-new-claude-4-8`,
    date: '2026-11-21',
    check({ body: { messages }, can }) {
      const index = messages.findIndex(({ role }) => role === 'system');
      if (index < 0) return undefined;
      if (!can.systemTurns) return invalid(`messages.${index}: role 'system' is not supported on this model`);
      const misplaced = messages.findIndex(
        ({ role, content }, at) =>
          role === 'system' &&
          (messages[at - 1]?.role !== 'user' || blocksOf(content).some(({ type }) => type !== 'text')),
      );
      return (
        misplaced >= 0 &&
        invalid(`messages.${misplaced}: a system message has texts and follows a user message`)
      );
    },
  },
  {
    id: 'no-prefill',
    says: 'Newer models take no assistant message at the end.',
    source: `${docs}/models/opus-5-5/migration-guide`,
    date: '2026-11-21',
    check: ({ body: { messages }, can }) =>
      !can.prefill &&
      messages.at(-1)?.role === 'assistant' &&
      invalid(
        'This model does not support assistant message prefill. The conversation must end with a user message.',
      ),
  },
  {
    id: 'empty-content',
    says: 'Messages and texts are not empty.',
    source: messagesPage,
    date: '2026-11-21',
    check(call) {
      const { messages, system = 'none' } = call.body;
      const empty = messages.findIndex(({ content }) => content.length === 0);
      if (empty >= 0) return invalid(`messages.${empty}: all messages must have non-empty content`);
      const texts = [...blocksOf(system), ...placedBlocks(call).map(({ block }) => block)];
      return (
        texts.some((block) => block.type === 'text' && block.text === '') &&
        invalid('messages: text content blocks must be non-empty')
      );
    },
  },
  {
    id: 'assistant-documents',
    says: 'Since 2026-10-21 an assistant message has no documents, and user texts no citations.',
    source: 'https://apidog.com/blog/claude-api-version-2026-10-21/',
    date: '2026-11-02',
    check(call) {
      const found = placedBlocks(call).find(
        ({ role, block }) =>
          (role === 'assistant' && block.type === 'document') ||
          (role === 'user' && block.type === 'text' && (block.citations?.length ?? 0) > 0),
      );
      const what = found?.block.type === 'document' ? 'document blocks are' : 'citations are';
      return (
        call.isNewer &&
        found &&
        invalid(
          `messages.${found.message}.content.${found.index}: ${what} not permitted in ${found.role} messages`,
        )
      );
    },
  },
  {
    id: 'tool-names',
    says: 'Names of tools keep to a pattern and are unique.',
    source: toolsPage,
    date: '2026-11-21',
    check({ body: { tools = [] } }) {
      const wrong = tools.findIndex(({ name }) => !namePattern.test(name));
      if (wrong >= 0)
        return invalid(`tools.${wrong}.custom.name: String should match pattern '${namePattern.source}'`);
      return (
        new Set(tools.map(({ name }) => name)).size < tools.length &&
        invalid('tools: Tool names must be unique.')
      );
    },
  },
  {
    id: 'choice-with-tools',
    says: 'A tool choice comes with tools.',
    source: toolsPage,
    date: '2026-11-21',
    check: ({ body: { tools = [], tool_choice: choice } }) =>
      choice !== undefined &&
      tools.length === 0 &&
      invalid('tool_choice: tool_choice may only be specified while providing tools.'),
  },
  {
    id: 'tool-use-ids',
    says: 'Ids of calls keep to a pattern.',
    source: 'upstreams.md §3: call ids',
    date: '2026-11-21',
    check(call) {
      const wrong = placedBlocks(call).find(
        ({ block }) => block.type === 'tool_use' && !idPattern.test(block.id),
      );
      return (
        wrong &&
        invalid(
          `messages.${wrong.message}.content.${wrong.index}.tool_use.id: String should match pattern '${idPattern.source}'`,
        )
      );
    },
  },
  {
    id: 'unique-ids',
    says: 'Ids of calls are unique in the conversation.',
    source: 'https://github.com/anthropics/claude-code/issues (messages: `tool_use` ids must be unique)',
    date: '2026-11-21',
    check(call) {
      const ids = placedBlocks(call).flatMap(({ block }) => (block.type === 'tool_use' ? [block.id] : []));
      return new Set(ids).size < ids.length && invalid('messages: `tool_use` ids must be unique');
    },
  },
  {
    id: 'calls-answered',
    says: 'Each call is answered in the next message.',
    source: 'https://github.com/anthropics/claude-code/issues/1831',
    date: '2025-06-09',
    check(call) {
      for (const index of call.body.messages.keys()) {
        const answered = answersIn(call, index + 1);
        const open = idsOf(call, index).filter((id) => !answered.includes(id));
        if (open.length > 0)
          return invalid(
            `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
          );
      }
      return undefined;
    },
  },
  {
    id: 'results-asked',
    says: 'Each result belongs to a call of the message before it.',
    source: 'https://github.com/anthropics/claude-code/issues/64383',
    date: '2026-06-01',
    check(call) {
      for (const { block, message, index } of placedBlocks(call))
        if (block.type === 'tool_result' && !idsOf(call, message - 1).includes(block.tool_use_id))
          return invalid(
            `messages.${message}.content.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${block.tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
          );
      return undefined;
    },
  },
  {
    id: 'results-first',
    says: 'Results stand before other content of their message.',
    source: toolsPage,
    date: '2026-11-21',
    check(call) {
      const late = placedBlocks(call).find(
        ({ block, message, index }) =>
          block.type === 'tool_result' &&
          blocksOf(call.body.messages[message]?.content ?? '')
            .slice(0, index)
            .some(({ type }) => type !== 'tool_result'),
      );
      const ids = late ? idsOf(call, late.message - 1) : [];
      return (
        late &&
        invalid(
          `messages.${late.message - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
        )
      );
    },
  },
];
