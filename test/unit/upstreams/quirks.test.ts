import { describe, expect, it } from 'vitest';
import { effortScale } from '../../../shared/upstreams/quirks.ts';
import { chooseEffort } from '../../../shared/upstreams/request-fields.ts';

const three = ['low', 'medium', 'high'];

describe('the effort for an upstream with limited efforts', () => {
  it.each([
    ['one that it knows', 'medium', three, 'medium'],
    ['above the highest: the highest', 'max', three, 'high'],
    ['between two: the lower', 'medium', ['low', 'high'], 'low'],
    ['below the lowest: the lowest', 'minimal', three, 'low'],
    ['an unsupported none becomes the lowest', 'none', three, 'low'],
    ['an unsupported none without other efforts', 'none', [], undefined],
    ['a supported none', 'none', ['none', ...three], 'none'],
    [
      'an effort below the lowest does not disable reasoning, even if none is supported',
      'minimal',
      ['none', 'high'],
      'high',
    ],
    ['outside the scale: the highest', 'extreme', three, 'high'],
    ['outside the scale, but known', 'default', ['none', 'default'], 'default'],
    ['not to one outside the scale while there are others', 'low', ['default', 'high'], 'high'],
    ['an effort outside the scale, if there is no other', 'low', ['none', 'default'], 'default'],
    ['no effort is sent to an upstream without efforts', 'high', [], undefined],
    ['by the order of the scale, not of the list', 'high', ['xhigh', 'low', 'medium'], 'medium'],
  ])('%s', (_case, requested, known, expected) => {
    expect(chooseEffort(requested, known)).toBe(expected);
  });

  it('is always one that it supports, or none', () => {
    for (const requested of effortScale)
      expect([...three, undefined]).toContain(chooseEffort(requested, three));
  });
});
