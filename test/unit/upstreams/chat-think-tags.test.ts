import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ThinkTags } from '../../../shared/upstreams/dialects/chat/think-tags.ts';

function split(...pieces: string[]): [reasoning: string, content: string] {
  const tags = new ThinkTags();
  const parts = [...pieces.map((piece) => tags.push(piece)), tags.end()];
  return [parts.map(({ reasoning }) => reasoning).join(''), parts.map(({ content }) => content).join('')];
}

describe('reasoning between tags', () => {
  it.each([
    ['is split off', '<think>so</think>hi', ['so', 'hi']],
    ['may follow white space', '\n<think>so</think>\n\nhi', ['so', '\n\nhi']],
    ['may stay open', '<think>so', ['so', '']],
    ['may be cut in its closing tag', '<think>so</thi', ['so</thi', '']],
    ['may be empty', '<think></think>hi', ['', 'hi']],
    ['may have ended in a separate field', '</think>hi', ['', 'hi']],
    ['is text later on', 'say <think>so</think>', ['', 'say <think>so</think>']],
    ['is text after the first', '<think>a</think>b<think>c</think>', ['a', 'b<think>c</think>']],
    ['is text when it is another tag', '<thin>a', ['', '<thin>a']],
    ['may look like its own end', '<think>a < b </ c</think>d', ['a < b </ c', 'd']],
    ['may be announced and never arrive', '<thi', ['', '<thi']],
    ['is empty if it is only white space', '\n', ['', '\n']],
  ])('%s', (_case, text, expected) => {
    expect(split(text)).toEqual(expected);
    expect(split(...text.split(''))).toEqual(expected);
  });

  it('is split the same for any cutting, and nothing is lost', () => {
    const token = fc.constantFrom('<think>', '</think>', '<', '/', 'think', '>', ' ', 'a', '\n');
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 12 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (tokens, cuts) => {
          const text = tokens.join('');
          const edges = [
            0,
            ...cuts.toSorted((a, b) => a - b).filter((cut) => cut < text.length),
            text.length,
          ];
          const pieces = edges.slice(1).map((end, i) => text.slice(edges[i], end));
          const [reasoning, content] = split(...pieces);
          expect([reasoning, content]).toEqual(split(text));
          const bare = text.replace(/^\s*(<think>|<\/think>)/, '');
          const rest = bare === text || /^\s*<\/think>/.test(text) ? bare : bare.replace('</think>', '');
          expect(reasoning + content).toBe(rest);
        },
      ),
    );
  });
});
