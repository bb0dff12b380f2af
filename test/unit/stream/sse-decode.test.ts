import { describe, expect, it } from 'vitest';
import { SseDecoder, SseTooLong } from '../../../shared/stream/sse.ts';

const decode = (text: string): string[] => {
  const decoder = new SseDecoder({ lineLengthMax: 100 });
  return [...decoder.push(text), ...decoder.end()];
};

describe('the decoder of server-sent events', () => {
  it.each([
    ['one event', 'data: a\n\n', ['a']],
    ['no space after the colon', 'data:a\n\n', ['a']],
    ['only one space is dropped', 'data:  a\n\n', [' a']],
    ['lines of one event are joined', 'data: a\ndata: b\n\n', ['a\nb']],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['CR alone', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['comments', ': ping\n\ndata: a\n: in between\n\n', ['a']],
    ['other fields', 'event: x\nid: 1\nretry: 3\ndata: a\n\n', ['a']],
    ['a field that only begins like data', 'database: no\ndata: a\n\n', ['a']],
    ['a bare field name is an empty line of data', 'data\n\n', ['']],
    ['an event without its blank line at the end', 'data: a', ['a']],
    ['nothing', '', []],
  ])('reads %s', (_case, text, events) => {
    expect(decode(text)).toEqual(events);
  });

  it('reads the same whatever the cutting, also between CR and LF', () => {
    const text = 'data: a\r\ndata: b\r\n\r\n: c\r\rdata: d\n\n';
    for (let cut = 0; cut <= text.length; cut += 1) {
      const decoder = new SseDecoder({ lineLengthMax: 100 });
      const events = [
        ...decoder.push(text.slice(0, cut)),
        ...decoder.push(text.slice(cut)),
        ...decoder.end(),
      ];
      expect(events).toEqual(['a\nb', 'd']);
    }
  });

  it('refuses a line or an event that grows over its bound', () => {
    const endless = new SseDecoder({ lineLengthMax: 100 });
    expect(() => Array.from({ length: 20 }, () => endless.push('x'.repeat(10)))).toThrow(SseTooLong);
    const manyLines = new SseDecoder({ lineLengthMax: 100 });
    expect(() => manyLines.push('data: 1234567890\n'.repeat(11))).toThrow(SseTooLong);
  });
});
