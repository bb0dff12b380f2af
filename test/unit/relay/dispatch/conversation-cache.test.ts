import { describe, expect, it } from 'vitest';
import { CoreRig } from '../../../support/core-rig.ts';
import { PrefixCacheUpstream } from '../../../support/prefix-cache-upstream.ts';

const conversations = 18;
const turns = 20;
const words = (name: string, length: number): string => `${name} `.repeat(length).slice(0, length);
const run = { name: 'run', parameters: { type: 'object' } };

const channel = (id: string, secrets: number): Record<string, unknown> => ({
  id,
  endpoint: `https://${id}.test/v1`,
  secret: Array.from({ length: secrets }, (_, i) => `ssm:/relay/relay/${id}-${i}`),
});

/** What an agent has said and heard before its call number `turn`. */
function transcript(conversation: number, turn: number): { role: string; content: string }[] {
  const begun = { role: 'user', content: words(`task ${conversation}`, 1_500) };
  const rest = Array.from({ length: turn }, (_, i) => [
    { role: 'assistant', content: words(`step ${conversation} ${i}`, 400) },
    { role: 'user', content: words(`result ${conversation} ${i}`, 1_200) },
  ]);
  return [begun, ...rest.flat()];
}

interface Run {
  channels: Record<string, unknown>[];
  /** Whether each call pretends to be a conversation of its own. */
  atRandom?: boolean;
}

/** Conversations of agents with one long system prompt, all at once; every second one through Responses. */
async function invoiced({ channels, atRandom = false }: Run): Promise<PrefixCacheUpstream> {
  const upstream = new PrefixCacheUpstream();
  const rig = new CoreRig({ channels, send: upstream.send, secretOf: (reference) => reference });
  const system = words('You are a coding agent.', 6_000);
  for (let turn = 0; turn < turns; turn += 1)
    for (let conversation = 0; conversation < conversations; conversation += 1) {
      const messages = transcript(conversation, turn);
      const more = atRandom ? { prompt_cache_key: `${conversation} ${turn}` } : {};
      const isChat = conversation % 2 === 0;
      const { status } = isChat
        ? await rig.post({
            model: 'm',
            tools: [{ type: 'function', function: run }],
            messages: [{ role: 'system', content: system }, ...messages],
            ...more,
          })
        : await rig.post(
            {
              model: 'm',
              tools: [{ type: 'function', ...run }],
              instructions: system,
              input: messages,
              ...more,
            },
            { path: '/v1/responses' },
          );
      expect(status).toBe(200);
    }
  return upstream;
}

describe('a conversation and the cache of its vendor', () => {
  it('over 2 channels with 3 secrets reads at least 95 % of what a single secret reads', async () => {
    const six = [channel('one', 3), channel('two', 3)];
    const single = await invoiced({ channels: [channel('one', 1)] });
    const kept = await invoiced({ channels: six });
    const random = await invoiced({ channels: six, atRandom: true });
    const shares = { single, kept, random };
    for (const [name, { cachedShare }] of Object.entries(shares))
      console.log(`${name}: ${(100 * cachedShare).toFixed(1)} % of the prompt tokens were read from caches`);
    expect(new Set(kept.invoice.map(({ organisation }) => organisation)).size).toBe(6);
    expect(kept.cachedShare / single.cachedShare).toBeGreaterThanOrEqual(0.95);
    expect(random.cachedShare / single.cachedShare).toBeLessThan(0.8);
  });
});
