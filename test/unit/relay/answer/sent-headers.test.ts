import { describe, expect, it } from 'vitest';
import { listDroppedNames, buildSentHeaders } from '../../../../shared/relay/answer/answer.ts';

describe('what was not sent', () => {
  it('is named once each, at most twenty fields', () => {
    const dropped = [...Array.from({ length: 30 }, (_, i) => `field_${i}`), 'field_0'];
    expect(listDroppedNames({ dropped: ['user', 'tools[0]', 'user'] })).toEqual(['user', 'tools[0]']);
    expect(listDroppedNames({ dropped })).toHaveLength(20);
    expect(listDroppedNames({ dropped: [] })).toBeUndefined();
  });

  it.each(['a, b', 'a\r\nset-cookie: x', 'ä', '', 'x'.repeat(65)])(
    'is not named by a name that is no plain word: %j',
    (name) => expect(buildSentHeaders({ dropped: [name] })).toEqual({}),
  );
});
