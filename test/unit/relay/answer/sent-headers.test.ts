import { describe, expect, it } from 'vitest';
import { listDroppedNames, buildSentHeaders } from '../../../../shared/relay/answer/answer.ts';

describe('the header of dropped fields', () => {
  it('names each field once, and at most twenty', () => {
    const dropped = [...Array.from({ length: 30 }, (_, i) => `field_${i}`), 'field_0'];
    expect(listDroppedNames({ dropped: ['user', 'tools[0]', 'user'] })).toEqual(['user', 'tools[0]']);
    expect(listDroppedNames({ dropped })).toHaveLength(20);
    expect(listDroppedNames({ dropped: [] })).toBeUndefined();
  });

  it.each(['a, b', 'a\r\nset-cookie: x', 'ä', '', 'x'.repeat(65)])(
    'omits a name that is not a plain word: %j',
    (name) => expect(buildSentHeaders({ dropped: [name] })).toEqual({}),
  );
});
