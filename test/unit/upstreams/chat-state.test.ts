import { describe, expect, it } from 'vitest';
import type { RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { ChatReader } from '../../../shared/upstreams/dialects/chat/events.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { defaultQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import type { ChatMessage } from '../../../shared/wire/canonical-call.ts';
import type { StatePart } from '../../../shared/wire/turn-state.ts';
import { chatCall, readerContext, settingsWith } from '../../support/dialect-parts.ts';

const skipped = { google: { thought_signature: 'skip_thought_signature_validator' } };
const signature = (text: string): object => ({ google: { thought_signature: text } });
const turn = (calls: number, more: object = {}): ChatMessage => ({
  role: 'assistant',
  content: null,
  ...more,
  tool_calls: Array.from({ length: calls }, (_, i) => ({
    id: `c${i}`,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  })),
});

/** The state of an answer with these deltas. */
function stateOf(...deltas: object[]): readonly StatePart[] | undefined {
  const reader = new ChatReader(readerContext());
  for (const delta of deltas) reader.push({ kind: 'value', value: { choices: [{ index: 0, delta }] } });
  reader.push({ kind: 'done' });
  reader.end();
  return reader.report().state;
}

/** The turn as it is sent. */
function sent(
  message: ChatMessage,
  quirks: Partial<Quirks> = {},
  parts?: readonly StatePart[],
  more: Partial<RequestSettings> = {},
): unknown {
  const request = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }, message] };
  const states = new Map(parts ? [[message, parts]] : []);
  const { body } = buildChatBody(
    chatCall(request),
    settingsWith({ states, quirks: { ...defaultQuirks, ...quirks }, ...more }),
  );
  return (body['messages'] as unknown[])[1];
}

const call = (more: object = {}): object => ({
  id: 'x',
  function: { name: 'f', arguments: '{"a":1}' },
  ...more,
});

describe('the state of an answer', () => {
  it.each<[string, object[], unknown]>([
    ['is empty for text only', [{ content: 'hi' }], undefined],
    [
      'excludes the reasoning of a turn without calls',
      [{ reasoning_content: 'so' }, { content: 'hi' }],
      undefined,
    ],
    [
      'includes the reasoning of a turn with calls',
      [
        { reasoning_content: 'so ' },
        { reasoning_content: 'what' },
        { content: 'hi' },
        { tool_calls: [call()] },
      ],
      [{ opaque: { reasoning_content: 'so what' } }, { text: 2 }, { call: 0 }],
    ],
    [
      'is reasoning details, their pieces joined, with or without calls',
      [
        { reasoning: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0 }] },
        {
          reasoning: 'b',
          reasoning_details: [{ type: 'reasoning.text', text: 'b', index: 0, signature: 's' }],
        },
        { reasoning_details: [{ type: 'reasoning.encrypted', data: 'e', index: 1 }] },
        { reasoning_details: [{ type: 'reasoning.encrypted', data: 'f', index: 1 }] },
      ],
      [
        {
          opaque: {
            reasoning_details: [
              { type: 'reasoning.text', text: 'ab', index: 0, signature: 's' },
              { type: 'reasoning.encrypted', data: 'e', index: 1 },
              { type: 'reasoning.encrypted', data: 'f', index: 1 },
            ],
          },
        },
      ],
    ],
  ])('%s', (_case, deltas, expected) => {
    expect(stateOf(...deltas)).toEqual(expected);
  });
});

describe('a turn that is sent again', () => {
  const parts: StatePart[] = [
    { opaque: { reasoning_content: 'kept' } },
    { call: 0 },
    { opaque: { call: 0, extra_content: signature('kept') } },
    { call: 1 },
  ];

  it('has empty reasoning if that was lost and is required, but only beside calls', () => {
    const quirks = { wantsBack: 'reasoning_content' } as const;
    expect(sent(turn(1), quirks)).toEqual({ ...turn(1), reasoning_content: '' });
    expect(sent({ role: 'assistant', content: 'hi' }, quirks)).toEqual({ role: 'assistant', content: 'hi' });
    expect(sent(turn(1), quirks, [{ opaque: { reasoning: 'so' } }])).toEqual({
      ...turn(1),
      reasoning_content: 'so',
    });
  });

  it('has the documented replacement on the first of parallel calls if the signature was lost', () => {
    const quirks = { wantsBack: 'thought_signature' } as const;
    const message = sent(turn(2), quirks) as { tool_calls: object[] };
    expect(message.tool_calls).toEqual([
      { ...turn(2).tool_calls?.[0], extra_content: skipped },
      turn(2).tool_calls?.[1],
    ]);
    expect(sent(turn(2), quirks, parts)).toMatchObject({
      tool_calls: [{ extra_content: signature('kept') }, {}],
    });
  });

  it('has no fields that the upstream rejects there', () => {
    const echoes = {
      reasoning_content: 'r',
      reasoning: 'r',
      reasoning_details: [{}],
      images: [{}],
      extra_content: {},
    };
    expect(sent(turn(1, echoes), { acceptedEchoes: [] })).toEqual(turn(1));
    expect(sent(turn(1, echoes), { acceptedEchoes: ['reasoning'] })).toEqual({ ...turn(1), reasoning: 'r' });
    expect(sent(turn(1, echoes))).toEqual(turn(1, echoes));
  });

  it('has no state when repeated without it, only the replacement, and reports that', () => {
    const without = new Set(['state'] as const);
    const quirks = { wantsBack: 'thought_signature' } as const;
    expect(sent(turn(1, { reasoning_content: 'own' }), quirks, parts, { omissions: without })).toEqual({
      ...turn(1),
      tool_calls: [{ ...turn(1).tool_calls?.[0], extra_content: skipped }],
    });
    const message = turn(1);
    const settings = settingsWith({ omissions: without, states: new Map([[message, parts]]) });
    expect(buildChatBody(chatCall({ model: 'm', messages: [message] }), settings).dropped).toEqual([
      'reasoning',
    ]);
  });
});
