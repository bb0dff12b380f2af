import { describe, expect, it } from 'vitest';
import { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import { candidatesOf } from '../../../../shared/relay/call/serving-channels.ts';
import type { Candidate } from '../../../../shared/relay/call/call.ts';
import { hashConversation, rankByScore, scoreOf } from '../../../../shared/relay/dispatch/candidate-order.ts';
import { ChatRequest } from '../../../../shared/wire/canonical-call.ts';
import { keyRow } from '../../../support/core-rig.ts';

const rows = (...all: Record<string, unknown>[]): Candidate[] =>
  all.flatMap((row) =>
    candidatesOf(
      ChannelRow.parse({ endpoint: 'https://up.test/v1', models: ['m'], state: true, ...row }),
      'm',
    ),
  );
type Request = Record<string, unknown>;
const call = (request: Request, account = 'acme'): Parameters<typeof scoreOf>[0] => ({
  key: keyRow({ account }),
  request: ChatRequest.parse({ model: 'm', ...request }),
});
const say = (content: unknown): object => ({ role: 'user', content });
const system = (content: string): object => ({ role: 'system', content });
const reply = { role: 'assistant', content: 'Hello.' };
const order = (candidates: Candidate[], text: string): string[] =>
  [...rankByScore(candidates, scoreOf(call({ messages: [say(text)] })))].map(({ id }) => id);
const first = (candidates: Candidate[], text: string): string => order(candidates, text)[0] ?? '';
const hash = (request: Request, account?: string): number => hashConversation(call(request, account));

describe('the candidate of a conversation', () => {
  const six = rows(
    { id: 'one', secret: ['a', 'b', 'c'] },
    { id: 'two', secret: ['a', 'b', 'c'], weight: 2 },
    { id: 'off', weight: 0 },
  );

  it.each<[string, Candidate[], Record<string, number>]>([
    [
      'secrets of two channels',
      six,
      { 'one|a': 1 / 9, 'one|b': 1 / 9, 'one|c': 1 / 9, 'two|a': 2 / 9, 'two|b': 2 / 9, 'two|c': 2 / 9 },
    ],
    [
      'three channels',
      rows({ id: 'x' }, { id: 'y', weight: 3 }, { id: 'z', weight: 6 }),
      { x: 0.1, y: 0.3, z: 0.6 },
    ],
    [
      'a tenth and the rest',
      rows({ id: 'tenth' }, { id: 'rest', weight: 9, secret: ['a', 'b'] }),
      { tenth: 0.1, 'rest|a': 0.45, 'rest|b': 0.45 },
    ],
  ])(
    '%s: each candidate gets its share within a tenth, over 10,000 conversations',
    (_name, candidates, shares) => {
      const counts = new Map<string, number>();
      for (let i = 0; i < 10_000; i += 1) {
        const id = first(candidates, `conversation ${i}`);
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      const off = Object.entries(shares).map(([id, share]) => (counts.get(id) ?? 0) / 10_000 / share - 1);
      expect(Math.max(...off.map(Math.abs))).toBeLessThan(0.1);
      expect([...counts.keys()].toSorted()).toEqual(Object.keys(shares).toSorted());
    },
  );

  it('changes only for the conversations of a removed candidate', () => {
    const texts = Array.from({ length: 600 }, (_, i) => `conversation ${i}`);
    const left = six.filter(({ id }) => id !== 'two|b');
    const before = texts.map((text) => first(six, text));
    const after = texts.map((text) => first(left, text));
    const isMoved = (i: number): boolean => before[i] !== after[i];
    const moved = texts.map((_, i) => i).filter(isMoved);
    expect(new Set(moved.map((i) => before[i]))).toEqual(new Set(['two|b']));
    expect(before.filter((id) => id === 'two|b')).toHaveLength(moved.length);
    // They spread over all remaining candidates.
    expect(new Set(moved.map((i) => after[i])).size).toBe(left.length - 1);
  });
});

describe('the hash of a conversation', () => {
  const image = { type: 'image_url', image_url: { url: 'https://files.test/a.png' } };
  const begun = [system('You are terse.'), say([{ type: 'text', text: 'What is this?' }, image])];

  it('covers its beginning only: later turns and their messages do not change it', () => {
    const later = [...begun, reply, say('And this?'), system('Be quick.'), say([image])];
    expect(hash({ messages: later })).toBe(hash({ messages: begun }));
  });

  it('ignores cache markers and signatures in URLs, which clients change from turn to turn', () => {
    const marked = (part: object): object => ({ ...part, cache_control: { type: 'ephemeral' } });
    const signed = (url: string): object[] => [say([{ type: 'image_url', image_url: { url } }])];
    expect(hash({ messages: [say([marked({ type: 'text', text: 'hi' })])] })).toBe(
      hash({ messages: [say('hi')] }),
    );
    expect(hash({ messages: signed('https://files.test/a.png?X-Amz-Date=1') })).toBe(
      hash({ messages: signed('https://files.test/a.png?X-Amz-Date=2') }),
    );
  });

  const long = 'You are a coding agent. '.repeat(3_000);
  const at = (place: number): string => `${long.slice(0, place)}${'#'.repeat(100)}${long.slice(place)}`;
  const other = [
    { type: 'text', text: 'What is this?' },
    { ...image, image_url: { url: 'data:image/png;base64,AA' } },
  ];
  const apart: [string, object[], object[], string?][] = [
    ['the account', [say('hi')], [say('hi')], 'other'],
    ['the first user turn', [say('hi')], [say('ho')]],
    ['the system text', [system('a'), say('hi')], [system('b'), say('hi')]],
    ['the roles of its texts', [system('a'), say('')], [say('a')]],
    ['an image', begun, [system('You are terse.'), say(other)]],
    ['a user turn after a long prompt', [system(long), say('a')], [system(long), say('b')]],
    ['the beginning of a long turn', [say(at(10))], [say(`${at(10).slice(0, 12)}-${at(10).slice(13)}`)]],
    ['the end of a long turn', [say(`${long}a`)], [say(`${long}b`)]],
    ['a hundred characters in the middle of a long turn', [say(at(31_000))], [say(at(31_007))]],
  ];
  it.each(apart)('differs by %s', (_by, one, another, account) => {
    expect(hash({ messages: another }, account)).not.toBe(hash({ messages: one }));
  });
});
