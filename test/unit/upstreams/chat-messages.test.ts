import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { CallIds } from '../../../shared/upstreams/call-ids.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { defaultQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import type { ChatMessage } from '../../../shared/wire/canonical-call.ts';
import { callIds, chatCall, settingsWith } from '../../support/dialect-parts.ts';

const settingsOf = (quirks: Partial<Quirks>, more: Partial<RequestSettings> = {}): RequestSettings =>
  settingsWith({ quirks: { ...defaultQuirks, ...quirks }, ...more });
const sent = (messages: ChatMessage[], settings = settingsWith(), form = 'chat'): unknown =>
  buildChatBody({ ...chatCall({ model: 'm', messages }), form }, settings).body['messages'];

const user: ChatMessage = { role: 'user', content: 'hi' };
const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
const called = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const result = (id: string, content: ChatMessage['content'] = 'ok'): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});

describe('the messages for an upstream', () => {
  const system = [
    { role: 'system' as const, content: 'one' },
    user,
    { role: 'developer' as const, content: 'two' },
    { role: 'system' as const, content: [{ type: 'text', text: 'three' }] },
  ];

  it("have system messages in the client's order, unless the row requires them first", () => {
    expect(sent(system)).toEqual([
      { role: 'system', content: 'one' },
      user,
      { role: 'system', content: 'two' },
      { role: 'system', content: [{ type: 'text', text: 'three' }] },
    ]);
    expect(sent(system.slice(0, 3), settingsOf({ systemPosition: 'first' }))).toEqual([
      { role: 'system', content: 'one\n\ntwo' },
      user,
    ]);
    const texts = ['one', 'two', 'three'].map((text) => ({ type: 'text', text }));
    expect(sent(system, settingsOf({ systemPosition: 'first' }))).toEqual([
      { role: 'system', content: texts },
      user,
    ]);
  });

  it('have null content beside calls, or an empty text if null is rejected', () => {
    expect(sent([user, called('a')])).toMatchObject([{}, { content: null }]);
    expect(sent([user, called('a')], settingsOf({ nullContent: 'empty' }))).toMatchObject([
      {},
      { content: '' },
    ]);
    const { content: _, ...absent } = called('a');
    expect(sent([user, absent as ChatMessage], settingsOf({ nullContent: 'empty' }))).toMatchObject([
      {},
      { content: '' },
    ]);
  });

  it('never contain a file by URL: another candidate may accept it', () => {
    const content = [{ type: 'file', file: { file_url: 'https://example.com/a.pdf' } }];
    expect(() => sent([user, { role: 'user', content }])).toThrow(
      expect.objectContaining({ name: 'CannotCarry', param: 'messages[1].content[0].file.file_url' }),
    );
    const inline = [
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' } },
    ];
    expect(sent([{ role: 'user', content: inline }])).toEqual([{ role: 'user', content: inline }]);
  });
});

describe('the ids of calls for an upstream', () => {
  it("are the vendor's own if they came from this channel", () => {
    const id = callIds.showId('search:0', 0);
    expect(sent([user, called(id), result(id)])).toEqual([user, called('search:0'), result('search:0')]);
    const other = new CallIds({ channel: 'other', requestId: 'r1' });
    expect(sent([user, called(id), result(id)], settingsOf({}, { callIds: other }))).toEqual([
      user,
      called(id),
      result(id),
    ]);
  });

  it("are the client's if the vendor repeats its own in one turn", () => {
    const [a, b] = [callIds.showId('same', 0), callIds.showId('same', 1)];
    expect(sent([user, called(a, b), result(b), result(a)])).toEqual([
      user,
      called('same', b),
      result(b),
      result('same'),
    ]);
  });

  it.each([
    ['max64', /^.{1,64}$/],
    ['max40', /^.{1,40}$/],
    ['alnum9', /^[a-zA-Z0-9]{9}$/],
  ] as const)('match its accepted form, in calls and results: %s', (form, accepted) => {
    const long = `call_${'x'.repeat(80)}`;
    const [, call, answer] = sent([user, called(long), result(long)], settingsOf({ callIdForm: form })) as [
      unknown,
      { tool_calls: { id: string }[] },
      { tool_call_id: string },
    ];
    expect(call.tool_calls[0]?.id).toMatch(accepted);
    expect(answer.tool_call_id).toBe(call.tool_calls[0]?.id);
  });
});

describe('the messages of a growing transcript', () => {
  const id = fc.constantFrom('a', 'search:0', callIds.showId('search:0', 0), 'x'.repeat(70), 'abcDEF123');
  const turnOf = ([ids, withPicture]: [string[], boolean]): ChatMessage[] => [
    { role: 'user', content: 'go' },
    ...(ids.length > 0 ? [called(...ids)] : []),
    ...ids.map((each) => result(each, withPicture ? [picture] : 'ok')),
    { role: 'assistant', content: 'done', reasoning_content: 'because' },
  ];
  const turn = fc.tuple(fc.uniqueArray(id, { maxLength: 3 }), fc.boolean()).map(turnOf);
  const variants: Partial<Quirks>[] = [
    {},
    { callIdForm: 'alnum9', nullContent: 'empty' },
    { callIdForm: 'max40', wantsBack: 'reasoning_content' },
    { wantsBack: 'thought_signature', acceptedEchoes: ['extra_content'] },
  ];

  it.each(variants)('are only appended: %j', (quirks) => {
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 4 }),
        turn,
        fc.constantFrom('chat', 'responses'),
        (turns, next, form) => {
          const before = turns.flat();
          const text = JSON.stringify(sent(before, settingsOf(quirks), form));
          const longer = JSON.stringify(sent([...before, ...next], settingsOf(quirks), form));
          expect(longer.startsWith(text.slice(0, -1))).toBe(true);
        },
      ),
    );
  });
});
