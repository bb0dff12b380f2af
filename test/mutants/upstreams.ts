import type { Mutants } from './mutant.ts';

export const upstreams: Mutants = {
  'an answer of calls that was cut says tool_calls': {
    file: 'shared/upstreams/answer-writer.ts',
    find: "const isToolCalls = reason === 'stop' || reason === 'tool_calls';",
    replace: 'const isToolCalls = true;',
    noticed: 'test/unit/upstreams/messages-events.test.ts',
    by: /after a call/,
  },
  'a count of the cache is not added to an input that leaves it out': {
    file: 'shared/upstreams/answer-writer.ts',
    find: 'return isApart && own >= 0 ? own + cache : own;',
    replace: 'return own;',
    noticed: 'test/unit/upstreams/vendor-usage.test.ts',
    by: /Anthropic/,
  },
  'an error in a list is not read': {
    file: 'shared/upstreams/answer-writer.ts',
    find: 'const whole = asRecord(firstOf(body));',
    replace: 'const whole = asRecord(body);',
    noticed: 'test/unit/upstreams/read-failure.test.ts',
    by: /in a list/,
  },
  'encrypted details of reasoning are joined': {
    file: 'shared/wire/chat-response.ts',
    find: "detailTexts.some((field) => typeof last[field] === 'string' || typeof piece[field] === 'string');",
    replace: 'true;',
    noticed: 'test/unit/upstreams/chat-state.test.ts',
    by: /is reasoning details, their pieces joined/,
  },
  'a wrapped call of Messages is shown although it was cut': {
    file: 'shared/upstreams/dialects/messages/events.ts',
    find: "? input !== '' && input !== whole",
    replace: '? true',
    noticed: 'test/unit/upstreams/messages-events.test.ts',
    by: /cut are never shown/,
  },
  'a part of a response that came in pieces is shown again with the whole': {
    file: 'shared/upstreams/dialects/responses/output-items.ts',
    find: "const added = text.startsWith(part.text) ? text.slice(part.text.length) : '';",
    replace: 'const added = text;',
    noticed: 'test/golden/upstream.test.ts',
    by: /becomes these chunks/,
  },
  'a developer text goes up as one to chat upstreams': {
    file: 'shared/upstreams/dialects/chat/request.ts',
    find: "if (message.role === 'developer') converted['role'] = 'system';",
    replace: '',
    noticed: 'test/unit/upstreams/chat-messages.test.ts',
    by: /have system messages where the client wrote them/,
  },
  'the first of parallel calls goes up unsigned': {
    file: 'shared/upstreams/dialects/chat/request.ts',
    find: "const google = { ...asRecord(namespaces['google']), thought_signature: skippedSignature };",
    replace: "const google = asRecord(namespaces['google']);",
    noticed: 'test/unit/upstreams/chat-state.test.ts',
    by: /documented replacement/,
  },
  'a limit of the client goes up above what the balance covers': {
    file: 'shared/upstreams/dialects/messages/request.ts',
    find: '    outputTokensLimit ?? Infinity,\n',
    replace: '',
    noticed: 'test/unit/upstreams/messages-request.test.ts',
    by: /never has more than the balance covers/,
  },
};
