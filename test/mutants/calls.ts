import type { Mutants } from './mutant.ts';

/** Of what happens to a call: candidates, health, states of turns, what its client and its line say. */
export const calls: Mutants = {
  'a candidate whose rest is over is tried by every call': {
    file: 'shared/relay/dispatch/dispatch.ts',
    find: "rank.standing?.is === 'probe' && !(await this.#claimsProbe(candidate, attempt))",
    replace: "rank.standing?.is === 'probe' && (await this.#claimsProbe(candidate, attempt), false)",
    noticed: 'test/unit/relay/health/cooldowns.test.ts',
    by: /is probed by one call/,
  },
  'a dead host uses up the attempts of a call': {
    file: 'shared/relay/dispatch/candidate-order.ts',
    find: 'failed >= attemptsOfChannel || ',
    replace: '',
    noticed: 'test/unit/relay/dispatch/candidate-order.test.ts',
    by: /goes from a channel to/,
  },
  'an alias tries one model with all its attempts': {
    file: 'shared/relay/dispatch/dispatch.ts',
    find: 'if (alias && tried.length === attemptsMax - 1)',
    replace: 'if (alias && tried.length === attemptsMax)',
    noticed: 'test/unit/relay/call/aliases.test.ts',
    by: /keeps the last of three attempts/,
  },
  'what a refusal taught is forgotten': {
    file: 'shared/relay/dispatch/dispatch.ts',
    find: 'if (asked) this.#learn(candidate, asked.again.variant);',
    replace: '',
    noticed: 'test/unit/relay/dispatch/repeats.test.ts',
    by: /the next one in it at once/,
  },
  'a rate limit of one model silences the others': {
    file: 'shared/relay/health/health-recorder.ts',
    find: "event?.type === 'rate_limited' ? limitKeyOf(candidate) : keyOf(candidate)",
    replace: 'keyOf(candidate)',
    noticed: 'test/unit/relay/health/cooldowns.test.ts',
    by: /is of one model/,
  },
  'a rest ends with a success that is older': {
    file: 'shared/relay/health/health-states.ts',
    find: 'return rest.untilMs > nowMs ? entry : probed(rest, event, nowMs);',
    replace:
      "return rest.untilMs > nowMs && event.type !== 'succeeded' ? entry : probed(rest, event, nowMs);",
    noticed: 'test/unit/relay/health/health-states.test.ts',
    by: /a success that may be older/,
  },
  'a seal opens under the id of another item': {
    file: 'shared/relay/state/turn-states.ts',
    find: "(itemId !== undefined && sealed['item'] !== itemId)",
    replace: "(itemId !== undefined && sealed['item'] === undefined)",
    noticed: 'test/unit/relay/state/sealed-state.test.ts',
    by: /another item is left out/,
  },
  'what is kept of a turn is not looked up': {
    file: 'shared/relay/call/read.ts',
    find: 'request.messages.some((one) => one.tool_calls)',
    replace: 'false',
    noticed: 'test/unit/relay/state/kept-state.test.ts',
    by: /goes up with the state of the first/,
  },
  'what the relay puts back is no input that an upstream may count': {
    file: 'shared/relay/answer/meter.ts',
    find: 'const putBack = [...call.states.values()];',
    replace: 'const putBack: never[] = [];',
    noticed: 'test/unit/relay/answer/usage-bounds.test.ts',
    by: /puts back into earlier turns/,
  },
  'a stream ends without its usage': {
    file: 'shared/relay/answer/meter.ts',
    find: 'return [this.#withQuota({ ...this.#last, choices: [], usage: this.#whole.usage })];',
    replace: 'return [];',
    noticed: 'test/unit/relay/pipeline.test.ts',
    by: /streams chunks of one id/,
  },
  'a URL may lead to a private host': {
    file: 'shared/relay/call/content-urls.ts',
    find: 'if (!isNamed && hostProblem(',
    replace: 'if (!isNamed && !url && hostProblem(',
    noticed: 'test/unit/relay/call/content-urls.test.ts',
    by: /may not be/,
  },
  'a URL may carry a password': {
    file: 'shared/relay/call/content-urls.ts',
    find: "if (parsed.username !== '' || parsed.password !== '')",
    replace: 'if (!url)',
    noticed: 'test/unit/relay/call/content-urls.test.ts',
    by: /may not be/,
  },
  'a key may ask for a model outside its whitelist': {
    file: 'shared/relay/call/read.ts',
    find: 'if (!isAllowed(key, snapshot, model.base))',
    replace: 'if (!isAllowed(key, snapshot, model.base) && model.official)',
    noticed: 'test/unit/relay/pipeline.test.ts',
    by: /a model outside the whitelist/,
  },
  'a repeat with another body runs': {
    file: 'shared/relay/call/idempotency.ts',
    find: "if (reply.state === 'completed') {",
    replace: "if (reply.state !== 'running') {",
    noticed: 'test/unit/relay/call/idempotency.test.ts',
    by: /another body/,
  },
};
