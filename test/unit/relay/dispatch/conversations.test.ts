import { describe, expect, it } from 'vitest';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import type { UpstreamReply, UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';
import { CoreRig, hello, type RigOptions } from '../../../support/core-rig.ts';

const channels = ['one', 'two'].map((id) => ({
  id,
  endpoint: `https://${id}.test/v1`,
  secret: ['a', 'b', 'c'].map((secret) => `ssm:/relay/relay/${id}-${secret}`),
}));
const search = {
  search: () => Promise.resolve([{ title: 't', url: 'https://web.test/', text: 'x', date: '' }]),
  // The model is free, and so are its searches.
  settings: { search: { type: 'tavily', secret: 'ssm:/relay/relay/s', price: 0, perMinute: 1_000 } },
} as unknown as RigOptions;

const limited = { error: { message: 'slow down', type: 'requests', code: 'rate_limit_exceeded' } };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Six candidates and the order of their requests. */
class Six {
  readonly rig: CoreRig;
  readonly asked: string[] = [];
  readonly limited = new Set<string>();
  /** The concurrent calls that a candidate accepts. */
  room = Infinity;
  readonly #running = new Map<string, number>();

  constructor(options: RigOptions = {}) {
    this.rig = new CoreRig({
      channels,
      ...options,
      settings: { ...defaultSettings, ...options.settings },
      secretOf: (reference) => reference,
      send: (request) => this.#send(request),
    });
  }

  /** Posts, and returns the candidate that answered. */
  async post(body: object, path?: string): Promise<string> {
    const { status } = await this.rig.post({ model: 'm', ...body }, path === undefined ? {} : { path });
    return (status === 200 ? this.asked.at(-1) : undefined) ?? `status ${status}`;
  }

  async #send(request: UpstreamRequest): Promise<UpstreamReply> {
    const candidate = request.headers['authorization'] ?? '';
    this.asked.push(candidate);
    const running = this.#running.get(candidate) ?? 0;
    if (this.limited.has(candidate) || running >= this.room)
      return { status: 429, headers: { 'retry-after': '20' }, body: once(JSON.stringify(limited)) };
    this.#running.set(candidate, running + 1);
    return { status: 200, headers: {}, body: this.#slowly(candidate) };
  }

  async *#slowly(candidate: string): AsyncGenerator<Uint8Array> {
    await this.rig.clock.sleep(200);
    for (const step of hello) yield bytes(String(step));
    this.#running.set(candidate, (this.#running.get(candidate) ?? 1) - 1);
  }
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield bytes(text);
}

const say = (content: unknown): object => ({ role: 'user', content });
const reply = { role: 'assistant', content: 'Hello.' };
const text = (i: number): string => `conversation ${i}`;

describe('the turns of a conversation', () => {
  it('go to one candidate, on both endpoints and with a search before them', async () => {
    const six = new Six(search);
    const used = new Set<string>();
    for (let i = 0; i < 20; i += 1) {
      const system = { role: 'system', content: 'You are terse.' };
      const turns = [say(text(i)), reply, say('more')];
      const picture = { type: 'image_url', image_url: { url: 'https://files.test/a.png' } };
      const shown = [say([{ type: 'text', text: 'more' }, picture]), reply, say('and?')];
      const answered = [
        await six.post({ messages: [system, ...turns.slice(0, 1)] }),
        await six.post({ messages: [system, ...turns] }),
        await six.post({ model: 'web-m', messages: [system, ...turns] }),
        await six.post({ model: 'web-m', messages: [system, ...turns.slice(0, 1)] }),
        await six.post({ messages: [system, ...turns, ...shown] }),
        await six.post({ instructions: 'You are terse.', input: text(i) }, '/v1/responses'),
        await six.post({ instructions: 'You are terse.', input: turns }, '/v1/responses'),
      ];
      expect(answered.map((one) => one === answered[0] && one.includes('ssm:'))).toEqual(
        answered.map(() => true),
      );
      used.add(answered[0] ?? '');
    }
    expect(six.rig.searched).toHaveLength(40);
    expect(used.size).toBe(6);
  });

  it('spill over to the next candidates when many callers begin alike at once, and none is rejected', async () => {
    const six = new Six();
    six.room = 20;
    const { rig } = six;
    const one = async (): Promise<number> => {
      const { status, body } = await rig.respond({ model: 'm', messages: [say('hi')], stream: true });
      if (typeof body !== 'string') for await (const _text of body);
      return status;
    };
    const statuses = await rig.clock.run(Promise.all(Array.from({ length: 50 }, one)));
    expect(statuses).toEqual(statuses.map(() => 200));
    expect(new Set(six.asked).size).toBe(3);
  });
});
