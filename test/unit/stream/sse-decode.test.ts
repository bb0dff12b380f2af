import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { SseDecoder, SseTooLong } from '../../../shared/stream/sse.ts';

/** The events of bytes that are cut at these positions. */
function decode(bytes: Uint8Array, cuts: number[] = [], lineLengthMax = 1_000_000): string[] {
  const utf8 = new TextDecoder();
  const decoder = new SseDecoder({ lineLengthMax });
  const reads = [...cuts, bytes.length].map((to, index) => bytes.subarray(cuts[index - 1] ?? 0, to));
  return [
    ...reads.flatMap((read) => decoder.push(utf8.decode(read, { stream: true }))),
    ...decoder.push(utf8.decode()),
    ...decoder.end(),
  ];
}

const transcripts = path.join(import.meta.dirname, '../../golden/upstream');
const golden = readdirSync(transcripts, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .map((name) => [name, readFileSync(path.join(transcripts, name))] as const)
  .filter(([, bytes]) => bytes.includes('data:'));

describe('the decoder of server-sent events', () => {
  it.each([
    ['one event', 'data: a\n\n', ['a']],
    ['no space after the colon', 'data:a\n\n', ['a']],
    ['only one space is dropped', 'data:  a\n\n', [' a']],
    ['lines of one event are joined', 'data: a\ndata: b\n\n', ['a\nb']],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['CR only', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['all line ends in one stream', 'data: a\r\ndata: b\r\n\r\n: c\r\rdata: d\n\n', ['a\nb', 'd']],
    ['CR and LF that end different lines', 'data: a\n\r\ndata: b\r\n\rdata: c\n\n', ['a', 'b', 'c']],
    ['a byte order mark', '\uFEFFdata: a\n\n', ['a']],
    ['characters of several bytes', 'data: ü€😀\n\n', ['ü€😀']],
    ['a line separator that does not end a line', 'data: a\u2028b\n\n', ['a\u2028b']],
    ['comments', ': ping\n\ndata: a\n: in between\n\n', ['a']],
    ['other fields', 'event: x\nid: 1\nretry: z\ndata: a\n\n', ['a']],
    ['an event without data', 'event: x\nid: 1\n\ndata: a\n\n', ['a']],
    ['a field that only begins like data', 'database: no\ndat: no\n data: no\ndata: a\n\n', ['a']],
    ['empty data', 'data:\n\ndata: \n\n', ['', '']],
    ['a bare field name is an empty line of data', 'data\n\ndata\ndata\n\n', ['', '\n']],
    ['more blank lines than one', '\n\ndata: a\n\n\n\ndata: b\n\n', ['a', 'b']],
    ['an event without its blank line at the end', 'data: a', ['a']],
    ['an event with half of it', 'data: a\r\n', ['a']],
    ['an event with a CR at the end', 'data: a\r', ['a']],
    ['a field name at the end', 'data: a\ndata', ['a\n']],
    ['nothing', '', []],
  ])('reads %s, wherever its bytes are cut', (_case, text, events) => {
    const bytes = Buffer.from(text);
    for (let first = 0; first <= bytes.length; first += 1)
      for (let second = first; second <= bytes.length; second += 1)
        expect(decode(bytes, [first, second])).toEqual(events);
    expect(decode(bytes, [...bytes.keys()])).toEqual(events);
  });

  it.each(golden)('reads %s the same, wherever its bytes are cut', (_name, bytes) => {
    const events = decode(bytes);
    expect(events.length).toBeGreaterThan(0);
    expect(decode(bytes, [...bytes.keys()])).toEqual(events);
    const step = Math.ceil(bytes.length / 300);
    for (let cut = 0; cut <= bytes.length; cut += step) expect(decode(bytes, [cut])).toEqual(events);
  });

  it.each([
    ['a line', 'data: ', 'xxxxxxxxxx'],
    ['a line without a field', '', 'xxxxxxxxxx'],
    ['a comment', ': ', 'xxxxxxxxxx'],
    ['an event', '', 'data: 123\n'],
    ['an event without data', '', 'id: 12345\n'],
  ])('rejects %s without an end', (_case, head, piece) => {
    const decoder = new SseDecoder({ lineLengthMax: 100 });
    decoder.push(head);
    for (let count = 0; count < 9; count += 1) decoder.push(piece);
    expect(() => decoder.push(piece.repeat(2))).toThrow(SseTooLong);
    expect(() => new SseDecoder({ lineLengthMax: 100 }).push(head + piece.repeat(11))).toThrow(SseTooLong);
  });

  it('reads a stream of any length with short events', () => {
    const decoder = new SseDecoder({ lineLengthMax: 20 });
    for (let event = 0; event < 1000; event += 1) expect(decoder.push('data: 12345\n\n')).toEqual(['12345']);
  });
});
