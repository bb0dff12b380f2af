import { describe, expect, it } from 'vitest';
import { CoreRig, hello } from '../../../support/core-rig.ts';

const tool = { type: 'function', function: { name: 't', parameters: { type: 'object' } } };
const custom = { type: 'custom', custom: { name: 'c' } };
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
const format = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } };
const say = (content: unknown): Record<string, unknown> => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'user', content },
  ],
});
const needing = [
  ['tools', { ...say('hi'), tools: [tool] }, 'tools'],
  ['tools', { ...say('hi'), tools: [custom] }, 'tools'],
  ['images', say([{ type: 'text', text: 'look' }, image]), 'messages[1].content[1]'],
  ['json_schema', { ...say('hi'), response_format: format }, 'response_format'],
] as const;

const first = { id: 'first', endpoint: 'https://first.test/v1', priority: 1 };
const second = { id: 'second', endpoint: 'https://second.test/v1' };
const hostsOf = (rig: CoreRig): string[] => rig.sent.map(({ url }) => new URL(url).hostname);

describe('a channel that lacks something according to a probe', () => {
  it.each(needing)('lacks %s: the call goes to the next channel', async (capability, body) => {
    const rig = new CoreRig({ channels: [{ ...first, can: { [capability]: false } }, second] });
    rig.upstream({ steps: hello });
    expect((await rig.post(body)).status).toBe(200);
    expect(hostsOf(rig)).toEqual(['second.test']);
  });

  it.each(needing)(
    'lacks %s: without another channel, the call is rejected with 400, names the field and costs nothing',
    async (capability, body, param) => {
      const charges = [{ id: 1, type: 'times-billing', models: ['m'], output: 1 }];
      const rig = new CoreRig({ channels: [{ ...first, can: { [capability]: false } }], charges });
      const answer = await rig.post(body);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.text).error).toMatchObject({ code: 'unsupported_parameter', param });
      expect(rig.sent).toEqual([]);
      expect(rig.store.sent).toEqual([]);
    },
  );

  it('is skipped only for the probed model', async () => {
    const models = ['m', 'other'];
    const can = { tools: false, model: 'm' };
    const rig = new CoreRig({
      channels: [
        { ...first, models, can },
        { ...second, models },
      ],
    });
    rig.upstream({ steps: hello });
    for (const model of ['other', 'm', 'web-other', 'web-m'])
      await rig.post({ ...say('hi'), model, tools: [tool] });
    expect(hostsOf(rig)).toEqual(['first.test', 'second.test', 'first.test', 'second.test']);
  });
});
