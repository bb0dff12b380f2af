import type { Mutants } from './mutant.ts';

const unit = 'test/unit/relay';
const simulation = 'test/simulation/simulation.test.ts';

/** Of money, stored responses, payments and notices. */
export const money: Mutants = {
  "a close takes the sweeper's close for its own": {
    file: 'shared/relay/money/reservations.ts',
    find: 'last?.id === own.id && last.kind === own.kind;',
    replace: 'last?.id === own.id;',
    noticed: `${unit}/money/reservations-close.test.ts`,
    by: /charges the difference once and is logged whole/,
  },
  'a lease is renewed after its end': {
    file: 'shared/relay/money/reservations.ts',
    find: 'const renewEveryMs = leaseMs - 2_000;',
    replace: 'const renewEveryMs = leaseMs + 8_000;',
    noticed: `${unit}/money/reservations-lease.test.ts`,
    by: /costs no write in the first minute/,
  },
  'a budget gets nothing back of what a call did not take': {
    file: 'shared/relay/money/budget-hold.ts',
    find: 'const by = { used: amount - this.#held,',
    replace: 'const by = { used: 0n,',
    noticed: simulation,
    by: /no money is lost or made/,
  },
  'a part of an overdrawn account pays alone': {
    file: 'shared/relay/money/shards.ts',
    find: 'images.some(({ overdraft }) => overdraft);',
    replace: 'images.some(({ parts }) => parts === 0);',
    noticed: simulation,
    by: /paid by a sum below zero/,
  },
  'a bill leaves out what was read from the cache': {
    file: 'shared/relay/money/bill.ts',
    find: '      ...partCountsOf(usage.prompt_tokens_details),\n',
    replace: '',
    noticed: `${unit}/money/billing-endings.test.ts`,
    by: /says in the close record whose counts they are/,
  },
  'what came to the store too late stays there': {
    file: 'shared/relay/stored/kept-answer.ts',
    find: "if (why !== 'too_large')",
    replace: "if (why === 'too_large')",
    noticed: `${unit}/stored/kept-answer.test.ts`,
    by: /is taken back when the store has it after all/,
  },
  'a start that nobody answered is refused although its run began': {
    file: 'shared/relay/stored/accept.ts',
    find: 'if (await withdrawn(ports, head)) throw error;',
    replace: 'await withdrawn(ports, head);\n    throw error;',
    noticed: `${unit}/stored/background.test.ts`,
    by: /is accepted when its run had begun/,
  },
  'a run does not take over what waits for it': {
    file: 'shared/relay/stored/handed-call.ts',
    find: 'entry, until, begins: true });',
    replace: 'entry, until });',
    noticed: `${unit}/stored/background.test.ts`,
    by: /a run/,
  },
  'a sweep forgets what it could not close': {
    file: 'shared/relay/jobs/sweeper.ts',
    find: "if (closed !== 'failed') open.delete(write.id);",
    replace: 'open.delete(write.id);',
    noticed: `${unit}/jobs/open-watch.test.ts`,
    by: /looks again at a close that failed/,
  },
  'a payment of another amount is granted': {
    file: 'shared/relay/payments/payments-handle.ts',
    find: 'if (found.minor !== paid.minor || found.currency !== paid.currency)',
    replace: 'if (found.currency !== paid.currency)',
    noticed: `${unit}/payments/payments.test.ts`,
    by: /is kept for an operator/,
  },
  'a balance that comes back leaves its mark open': {
    file: 'shared/relay/alerts/balance-watch.ts',
    find: 'if (has >= limit) return had < limit;',
    replace: 'if (has >= limit) return false;',
    noticed: `${unit}/alerts/balance-crossing.test.ts`,
    by: /worth a look/,
  },
  'an id of any form is looked for in the store': {
    file: 'shared/relay/stored/conversation.ts',
    find: '    if (!wanted.every((id) => isStoredId(id))) throw notFound(previous);\n',
    replace: '',
    noticed: 'test/unit/relay/stored/stored-conversation.test.ts',
    by: /as the response before, without a read/,
  },
  'a conversation is read whatever its length': {
    file: 'shared/relay/stored/conversation.ts',
    find: '  if (head.conversationLength > conversationLengthMax) throw tooLong(field);\n',
    replace: '',
    noticed: 'test/unit/relay/stored/stored-conversation.test.ts',
    by: /have 10 MB at most/,
  },
  'a request may refer to any number of responses': {
    file: 'shared/relay/stored/conversation.ts',
    find: '  if (others.size > referredMax) throw tooManyReferred(wanted);\n',
    replace: '',
    noticed: 'test/unit/relay/stored/stored-conversation.test.ts',
    by: /name 128 responses at most/,
  },
  'a late settle is charged in full': {
    file: 'shared/relay/money/late-settle.ts',
    find: "if (kind !== 'expired') return;",
    replace: "if (kind === 'expired') return;",
    noticed: 'test/unit/relay/money/reservations-close.test.ts',
    by: /charges the difference once and is logged whole/,
  },
  'free calls are counted where the setting says not': {
    file: 'shared/relay/money/bill.ts',
    find: ' && !snapshot.settings.limits.countFree) return undefined;',
    replace: ' && !isFree) return undefined;',
    noticed: 'test/unit/relay/money/billing-endings.test.ts',
    by: /are none when it is free and free calls are not to be counted/,
  },
};
