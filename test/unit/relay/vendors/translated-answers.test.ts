/** Citations and refusals reach Messages clients of any upstream, streamed or not. */
import { describe, expect, it } from 'vitest';
import type { Answer, Step } from '../../../support/core-rig.ts';
import { answers, askIn, callsWith, eventsOf, rowOf, type Form } from '../../../support/three-forms.ts';

type Json = Record<string, unknown>;

/** The message that a client gets, streamed or not. */
function messageOf(
  answer: Answer,
  isStreamed: boolean,
): { content: Json[]; stop: unknown; details: unknown } {
  if (!isStreamed) {
    const { content, stop_reason: stop, stop_details: details } = JSON.parse(answer.text) as Json;
    return { content: content as Json[], stop, details };
  }
  const content: Json[] = [];
  let end: Json = {};
  for (const { type, index, content_block: block, delta } of eventsOf(answer)) {
    const at = content[Number(index)] ?? {};
    const piece = (delta ?? {}) as Json;
    if (type === 'content_block_start') content[Number(index)] = { ...(block as Json) };
    else if (piece['type'] === 'text_delta') at['text'] = `${String(at['text'])}${String(piece['text'])}`;
    else if (piece['type'] === 'citations_delta')
      at['citations'] = [...((at['citations'] ?? []) as Json[]), piece['citation']];
    else if (type === 'message_delta') end = piece;
  }
  return { content, stop: end['stop_reason'], details: end['stop_details'] };
}

async function said(dialect: Form, steps: Step[]): Promise<ReturnType<typeof messageOf>> {
  const [streamed, whole] = await Promise.all(
    [true, false].map(async (stream) => {
      const { answer } = await askIn('messages', { stream }, { channels: [rowOf(dialect)], steps });
      return messageOf(answer, stream);
    }),
  );
  expect(streamed).toEqual(whole);
  return whole!;
}

const cited = { url: 'https://a.test/x', title: 'A', start_index: 0, end_index: 5 };
const citation = {
  type: 'web_search_result_location',
  url: 'https://a.test/x',
  title: 'A',
  cited_text: '',
  encrypted_index: 'relay1.',
};
const output = (...content: Json[]): Json[] => [{ type: 'message', id: 'm1', role: 'assistant', content }];

describe('citations', () => {
  const annotated = { annotations: [{ type: 'url_citation', url_citation: cited }] };
  it.each<[string, Form, Step[], Json[]]>([
    [
      'of a chat delta',
      'chat',
      answers.chat([{ content: 'Sunny' }, annotated], 'stop'),
      [{ type: 'text', text: 'Sunny', citations: [citation] }],
    ],
    [
      'before the text',
      'chat',
      answers.chat([annotated, { content: 'Sunny' }], 'stop'),
      [{ type: 'text', text: 'Sunny', citations: [citation] }],
    ],
    [
      'of an answer without text',
      'chat',
      answers.chat([{ reasoning_content: 'Hm' }, annotated], 'stop'),
      [{ type: 'text', text: '', citations: [citation] }],
    ],
    [
      'of a Responses item',
      'responses',
      answers.responses(
        output({ type: 'output_text', text: 'Sunny', annotations: [{ type: 'url_citation', ...cited }] }),
      ),
      [{ type: 'text', text: 'Sunny', citations: [citation] }],
    ],
  ])('%s are part of the text block', async (_case, dialect, steps, content) => {
    expect((await said(dialect, steps)).content).toEqual(content);
  });

  it('of the relay are not sent back to a Messages vendor, which checks them', async () => {
    const kept = { type: 'text', text: 'Sunny', citations: [{ ...citation, encrypted_index: 'Eo8' }] };
    const content = [
      { type: 'text', text: 'Sunny', citations: [citation] },
      { type: 'text', text: '', citations: [citation] },
      kept,
    ];
    const turns = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'go' },
    ];
    const options = { channels: [rowOf('messages')], steps: callsWith.messages('{}') };
    const { sent } = await askIn('messages', { messages: turns }, options);
    expect((sent['messages'] as Json[])[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'Sunny' }, kept],
    });
  });
});

describe('a refusal', () => {
  const details = (explanation: string | null): Json => ({ type: 'refusal', category: null, explanation });
  it.each<[string, Form, Step[], string, Json | undefined]>([
    [
      'of a chat delta',
      'chat',
      answers.chat([{ refusal: 'I ' }, { refusal: 'won’t.' }], 'stop'),
      'refusal',
      details('I won’t.'),
    ],
    [
      'of Responses',
      'responses',
      answers.responses(output({ type: 'refusal', refusal: 'No.' })),
      'refusal',
      details('No.'),
    ],
    ['by a filter', 'chat', answers.chat([{ content: 'a' }], 'content_filter'), 'refusal', details(null)],
    ['of null', 'chat', answers.chat([{ content: 'a', refusal: null }], 'stop'), 'end_turn', undefined],
  ])('%s ends the message with its stop reason', async (_case, dialect, steps, reason, expected) => {
    const { stop, details: found } = await said(dialect, steps);
    expect([stop, found]).toEqual([reason, expected]);
  });
});
