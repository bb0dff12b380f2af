import { describe, expect, it } from 'vitest';
import { playTurn, type Transcript } from '../../../infra/local/vendors/script.ts';
import { doubleOf, jsonOf, send } from './rig.ts';

const said = ['Do it.', 'call run {"cmd":"ls -l"}', 'call patch "a\\nb"', 'call ns__run {"cmd":"pwd"}'].join(
  '\n',
);
const transcript = (turns: number, more: Partial<Transcript> = {}): Transcript => ({
  said,
  turns,
  results: [],
  tools: [{ name: 'run' }, { name: 'patch' }, { name: 'ns__run' }],
  choice: 'auto',
  whole: () => '',
  ...more,
});
const callsAt = (turns: number, more?: Partial<Transcript>) =>
  playTurn(transcript(turns, more)).calls.map(({ name, input }) => [name, input]);

describe('a text that contains calls', () => {
  it('produces one call in each turn, with exactly its input, and then an answer', () => {
    expect([0, 1, 2, 3].map((turns) => callsAt(turns))).toEqual([
      [['run', '{"cmd":"ls -l"}']],
      [['patch', '{"input":"a\\nb"}']],
      [['ns__run', '{"cmd":"pwd"}']],
      [],
    ]);
  });

  it('passes text to a tool that accepts text', () => {
    expect(callsAt(1, { tools: [{ name: 'patch', custom: true }] })).toEqual([['patch', 'a\nb']]);
  });
});

it('the last of several consecutive user texts counts, also when they are the blocks of one message', async () => {
  const messages = [{ role: 'user', content: ['first', 'second'].map((text) => ({ type: 'text', text })) }];
  const reply = await send(doubleOf('anthropic'), {
    body: { model: 'claude-haiku-4-5', max_tokens: 100, messages },
  });
  expect(jsonOf(reply)['content']).toEqual([{ type: 'text', text: 'You said: "second".' }]);
});
