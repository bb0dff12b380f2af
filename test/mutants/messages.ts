import type { Mutants } from './mutant.ts';

const folder = 'shared/endpoints/messages';
const dialect = 'shared/upstreams/dialects/messages';
const tests = 'test/unit/endpoints/messages';

export const messages: Mutants = {
  'what is written for an hour is not among what is written': {
    file: `${folder}/answer-events.ts`,
    find: 'const written = forMinutes + forHour;',
    replace: 'const written = forMinutes;',
    noticed: `${tests}/money.test.ts`,
    by: /same token split for the client/,
  },
  'pieces of two calls are joined as they come': {
    file: `${dialect}/native-events.ts`,
    find: 'if (isOther && !mayBegin) {',
    replace: 'if (isOther && type !== type) {',
    noticed: `${tests}/hostile.test.ts`,
    by: /that interleave are sorted one after the other/,
  },
  'thinking of earlier turns is held for nothing': {
    file: `${folder}/conversation.ts`,
    find: '          this.unknown.push(block);\n          if (state',
    replace: '          if (state',
    noticed: `${tests}/money.test.ts`,
    by: /thinking/,
  },
  'the key goes up in the header of the older versions': {
    file: 'shared/upstreams/types/anthropic.ts',
    find: "(sent?.['anthropic-version'] ?? '') < bearerSince",
    replace: "(sent?.['anthropic-version'] ?? '') !== bearerSince + 1",
    noticed: `${tests}/hostile.test.ts`,
    by: /selects the header of the key/,
  },
  'arguments of a caller are read for ids': {
    file: 'shared/upstreams/restricted-fields.ts',
    find: "(type === 'tool_use' && field === 'input')",
    replace: 'false',
    noticed: `${tests}/hostile.test.ts`,
    by: /may have any names/,
  },
  'thinking without state goes to Claude': {
    file: `${folder}/answer-events.ts`,
    find: 'signature: this.#encryptState() ?? sealPrefix',
    replace: "signature: this.#encryptState() ?? ''",
    noticed: 'test/unit/relay/vendors/messages-state.test.ts',
    by: /completes, and each vendor gets only its own state \(stream/,
  },
  'the name of a session chooses no candidate': {
    file: 'shared/relay/dispatch/candidate-order.ts',
    find: 'const name = conversation ?? request.prompt_cache_key;',
    replace: 'const name = request.prompt_cache_key ?? (conversation && undefined);',
    noticed: 'test/unit/relay/vendors/messages-caching.test.ts',
    by: /99 %/,
  },
  'a block is passed on and made again': {
    file: `${folder}/answer-events.ts`,
    find: '    this.#isNative ||= native !== undefined;\n',
    replace: "    this.#isNative ||= native?.event['type'] === 'content_block_start';\n",
    noticed: `${tests}/pass-through.property.test.ts`,
    by: /streamed or not, from a stream/,
  },
};
