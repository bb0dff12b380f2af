import type { Mutants } from './mutant.ts';

export const operate: Mutants = {
  'refunds together are more than the charge': {
    file: 'shared/operate/customers/refund-charge.ts',
    find: 'amount > left)',
    replace: 'amount > charge)',
    noticed: 'test/ops/refunds.test.ts',
    by: /parts that never exceed/,
  },
  'a leaked key has two successors': {
    file: 'shared/operate/keys/leaked-key.ts',
    find: 'unchanged: { _leaked: undefined },',
    replace: 'unchanged: {},',
    noticed: 'test/ops/key-edits.test.ts',
    by: /by two operators at once creates one successor/,
  },
  'advice names no model where the line has none': {
    file: 'shared/operate/requests/next-step.ts',
    find: 'known[name as keyof Known] ?? other',
    replace: "known[name as keyof Known] ?? ''",
    noticed: 'test/unit/operate/next-step.test.ts',
    by: /names the next step/,
  },
  'a channel is written before the prices of its models': {
    file: 'shared/operate/config/write-rows.ts',
    find: "['charges', 'plans', 'settings', 'channels']",
    replace: "['channels', 'charges', 'plans', 'settings']",
    noticed: 'test/unit/operate/config-plans.test.ts',
    by: /prices before channels/,
  },
  'a plan goes on after a write that somebody overtook': {
    file: 'shared/operate/rows.ts',
    find: 'else if (write.conflict) throw write.conflict;',
    replace: '',
    noticed: 'test/unit/operate/config-plans.test.ts',
    by: /stops at the first row/,
  },
  'what-if forgets that each call is rounded': {
    file: 'shared/operate/what-if/edit-effects.ts',
    find: 'high: (high + rounding) / productsPerNano',
    replace: 'high: high / productsPerNano',
    noticed: 'test/unit/operate/what-if.property.test.ts',
    by: /within its bounds/,
  },
  'an audit that rebuilds corrects no day': {
    file: 'shared/operate/ledger/audit-ledger.ts',
    find: 'const left = rebuild ? await correct(ports, differences) : differences;',
    replace: 'const left = differences;',
    noticed: 'test/ops/audit.test.ts',
    by: /corrects it on request/,
  },
  'another amount passes for the grant of its id': {
    file: 'shared/operate/customers/grants.ts',
    find: 'if (there && parseYuan(there.amount) === amount) return made;',
    replace: 'if (there) return made;',
    noticed: 'test/ops/accounts.test.ts',
    by: /another amount for a used id/,
  },
  'a probe sends one call too many': {
    file: 'shared/operate/channels/probe-channel.ts',
    find: 'if (sent >= callsMax)',
    replace: 'if (sent > callsMax)',
    noticed: 'test/unit/operate/probe-channel.test.ts',
    by: /at most a dozen/,
  },
  "an upstream's echo of the secret is shown": {
    file: 'shared/operate/channels/test-channel.ts',
    find: "text.replaceAll(secret, '(secret)')",
    replace: 'text',
    noticed: 'test/ops/channels.test.ts',
    by: /shows an upstream.s error, without the secret/,
  },
};
