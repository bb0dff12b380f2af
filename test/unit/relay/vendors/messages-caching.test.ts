/** A Claude Code session with two channels stays on one of them, so that it reads that vendor's cache. */
import { describe, expect, it } from 'vitest';
import { recordsIn } from '../../../../shared/wire/json.ts';
import { VendorRig } from '../../../support/vendor-rig.ts';

type Json = Record<string, unknown>;

const ephemeral = { cache_control: { type: 'ephemeral' } };
const text = (said: string, more: object = {}): Json => ({ type: 'text', text: said, ...more });
const filler = (of: string, length: number): string => `${of} says what it says. `.repeat(length);

/** Two accounts at the vendor, each with a cache of its own. */
const rigOf = (...accounts: string[]): VendorRig =>
  new VendorRig(
    accounts.map((secret) => ({
      vendor: 'anthropic',
      model: 'claude-opus-5-5',
      row: { type: 'anthropic', id: secret, secret, priority: 1 },
    })),
    { secretOf: (reference) => reference },
  );

/** A body like Claude Code's: cache markers on the system blocks and on the user's last two turns. */
function bodyOf(messages: readonly Json[], who: string): Json {
  const users = new Set(messages.flatMap(({ role }, at) => (role === 'user' ? [at] : [])).slice(-2));
  return {
    model: 'm',
    max_tokens: 4_000,
    system: [text(filler(who, 200), ephemeral), text(filler('The environment', 20), ephemeral)],
    tools: ['Read', 'Bash', 'Edit'].map((name) => ({
      name,
      description: filler(name, 20),
      input_schema: { type: 'object', properties: { city: { type: 'string' } } },
    })),
    messages: messages.map(({ role, content }, at) => {
      const blocks = recordsIn(content);
      const last = blocks.length - 1;
      const marked = users.has(at)
        ? blocks.map((block, i) => (i === last ? Object.assign({}, block, ephemeral) : block))
        : blocks;
      return { role, content: marked };
    }),
  };
}

/** Cached tokens that a session of 30 turns reads, while a sub-agent with another prompt takes turns between. */
async function session(rig: VendorRig, id: string): Promise<{ read: number; channels: Set<unknown> }> {
  const headers = { 'x-api-key': 'sk-test', 'x-claude-code-session-id': id };
  const main: Json[] = [];
  const agent: Json[] = [];
  let read = 0;
  const channels = new Set<unknown>();
  for (let turn = 0; turn < 30; turn += 1) {
    const isAgent = turn > 4 && turn % 3 === 0;
    const messages = isAgent ? agent : main;
    const said = text(`${id} ${filler(`Turn ${turn}`, 10)}`);
    const last = recordsIn(recordsIn(messages.at(-1)?.['content']));
    const results = last
      .filter(({ type }) => type === 'tool_use')
      .map(({ id: use }) => ({ type: 'tool_result', tool_use_id: use, content: filler('A file', 20) }));
    messages.push({ role: 'user', content: [...results, said] });
    const body = bodyOf(messages, isAgent ? 'An agent' : 'Claude Code');
    const answer = await rig.core.post(body, { path: '/v1/messages', headers });
    expect(answer.status).toBe(200);
    const { content, usage } = JSON.parse(answer.text) as { content: Json[]; usage: Record<string, number> };
    messages.push({ role: 'assistant', content });
    read += usage['cache_read_input_tokens'] ?? 0;
    channels.add(rig.core.logged.at(-1)?.channel);
  }
  expect(rig.objections).toEqual([]);
  return { read, channels };
}

const sessions = Array.from({ length: 3 }, (_, at) => `session-${at}`);

describe('a session of 30 turns through two channels', () => {
  it('reads at least 99 % of the cached tokens that it reads through one', async () => {
    const used = new Set<unknown>();
    // The ids have one length, so all sessions read as many tokens.
    const alone = await session(rigOf('one'), 'session-0');
    for (const id of sessions) {
      const both = await session(rigOf('one', 'two'), id);
      expect(alone.read).toBeGreaterThan(30_000);
      expect(both.read / alone.read).toBeGreaterThanOrEqual(0.99);
      expect(both.channels.size).toBe(1);
      for (const channel of both.channels) used.add(channel);
    }
    // Sessions are spread over both.
    expect(used.size).toBe(2);
  });
});
