import { describe, expect, it } from 'vitest';
import { readKey } from '../../../../shared/relay/call/call-refusals.ts';
import { CoreRig, hello } from '../../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

describe('the Authorization header', () => {
  it.each([
    'Bearer sk-test',
    'bearer sk-test',
    'BEARER   sk-test',
    ' Bearer sk-test\t',
    `Bearer${' '.repeat(16_384)}sk-test`,
  ])('holds a key in %j', (authorization) => {
    expect(readKey({ authorization })).toBe('sk-test');
  });

  it.each([
    ['two headers in one', 'Bearer sk-one, Bearer sk-two'],
    ['a tab for a space', 'Bearer\tsk-test'],
    ['a blank in the key', 'Bearer sk-te st'],
    ['another scheme', 'Basic sk-test'],
    ['no scheme', 'sk-test'],
    ['the scheme twice', 'Bearer Bearer sk-test'],
    ['a key of 64 KB', `Bearer sk-${'x'.repeat(65_536)}`],
    ['a key of 204 characters', `Bearer sk-${'x'.repeat(201)}`],
    ['a key that is only the prefix', 'Bearer sk-'],
    ['a letter beyond ASCII', 'Bearer sk-t\u00e9st'],
    ['a control character', 'Bearer sk-\u0007'],
    ['only blanks after the scheme', `Bearer${' '.repeat(16_384)}`],
    // A pattern that backtracks over the blanks takes some 20 s for this one.
    ['200,000 blanks and two lines', `Bearer${' '.repeat(200_000)}sk-te\nst`],
    ['a million blanks between words', `Bearer${' '.repeat(200_000)}sk-test${' '.repeat(1_000_000)}x`],
  ])('with %s is rejected before any table is read', async (_case, authorization) => {
    const rig = new CoreRig().upstream({ steps: hello });
    const { status, text } = await rig.post(ask, { headers: { authorization } });
    expect([status, JSON.parse(text).error.type]).toEqual([401, 'authentication_error']);
    expect([rig.keyLookups, rig.sent.length]).toEqual([0, 0]);
  });
});
