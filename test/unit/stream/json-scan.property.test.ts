import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonScan } from '../../../shared/stream/json-scan.ts';

const object = fc.dictionary(
  fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', 'a', '\n') }),
  fc.json(),
);

describe("the end of a call's arguments", () => {
  it('is found where the object ends, and not before, however its text is cut', () => {
    fc.assert(
      fc.property(object, fc.constantFrom(undefined, 1, 2), fc.array(fc.nat(40)), (value, indent, cuts) => {
        const text = JSON.stringify(value, null, indent);
        const end = new JsonScan();
        const last = text.length - 1;
        let read = 0;
        for (const cut of [...cuts.filter((at) => at < last).toSorted((a, b) => a - b), last]) {
          end.push(text.slice(read, cut));
          read = cut;
          expect(end.complete).toBe(false);
        }
        end.push(text.slice(last));
        expect(end.complete).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

it.each([
  ['{"a": \n', true],
  ['[1 , ', true],
  ['[ ', true],
  ['[1 ', false],
  ['["a, ', false],
  ['{ ', false],
])('a value may begin after %j: %s', (text, expected) => {
  const [whole, pieces] = [new JsonScan(), new JsonScan()];
  whole.push(text);
  for (const character of text) pieces.push(character);
  expect([whole.wantsValue, pieces.wantsValue]).toEqual([expected, expected]);
});
