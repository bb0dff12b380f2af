import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatLines, parseLines } from '../../../infra/ops/fields/map-lines.ts';

const name = fc.string({ minLength: 1, maxLength: 12 }).filter((each) => each !== '__proto__');
const map = (value: fc.Arbitrary<unknown>) => fc.dictionary(name, value, { minKeys: 1, maxKeys: 5 });
/** Values as a row stores them: no negative zero. */
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe('a map written as lines of name and value', () => {
  it('is read back unchanged for any JSON value', () => {
    fc.assert(
      fc.property(map(json), (value) => {
        expect(parseLines('f', formatLines(value))).toEqual(value);
      }),
    );
  });

  it('is read back unchanged when its values are maps of rules', () => {
    fc.assert(
      fc.property(map(map(json)), (value) => {
        expect(parseLines('f', formatLines(value, true), true)).toEqual(value);
      }),
    );
  });

  it.each([
    ['temperature = 1\n\nstop = a b\nuser=null', { temperature: 1, stop: 'a b', user: null }],
    ['a = true\nb = "true"', { a: true, b: 'true' }],
    ['', undefined],
    ['gone =\nstays = 1', { gone: undefined, stays: 1 }],
  ])('is read from typed text: %j', (text, value) => {
    expect(parseLines('f', text)).toEqual(value);
  });

  it.each(['sk-secret-value', '= 1', 'a', 'a = 1\na = 2'])('rejects %j without quoting it', (text) => {
    expect(() => parseLines('params.set', text)).toThrow(/^params\.set: (?!.*sk-secret)/);
  });
});
