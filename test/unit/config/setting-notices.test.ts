import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';
import { defaultSettings, shownNotices } from '../../../shared/config/settings.ts';

const read = (value: unknown) => readSetting({ name: 'notices', value }, { local: false });

describe('the setting notices', () => {
  it('takes texts with times and models, and no more of them than fit on a page', () => {
    const row = {
      text: ' Maintenance <b>',
      from: '2026-12-01',
      until: '2026-12-02T06:00:00Z',
      models: ['a'],
    };
    expect(read([row, { text: 'x' }])).toEqual({
      row: {
        notices: [
          {
            text: 'Maintenance <b>',
            fromMs: Date.parse('2026-12-01'),
            untilMs: Date.parse('2026-12-02T06:00:00Z'),
            models: ['a'],
          },
          { text: 'x' },
        ],
      },
    });
    expect(read(Array.from({ length: 20 }, () => ({ text: 'x' })))).toHaveProperty('row');
  });

  it.each([
    [{ text: 'x' }, /^value: found .*wanted a list of at most 20 maps/],
    [Array.from({ length: 21 }, () => ({ text: 'x' })), /^value: found .*wanted a list of at most 20 maps/],
    [['x'], /^value\[0\]: found "x", wanted a map \{text, from, until, models\}/],
    [[{ text: '' }], /^value\[0\]\.text: found an empty text, wanted a text that is not empty/],
    [[{ text: 'x'.repeat(501) }], /^value\[0\]\.text: .*at most 500 characters/],
    [[{ text: 'x', from: 'Monday' }], /^value\[0\]\.from: found "Monday", wanted an ISO 8601 time/],
    [[{ text: 'x', from: '2026-12-02', until: '2026-12-02' }], /^value\[0\]\.until: .*not after from/],
    [[{ text: 'x', models: [] }], /^value\[0\]\.models: .*1 to 100 model names/],
    [[{ text: 'x', link: 'https://a.example' }], /^value\[0\]\.link: found, but not known here/],
  ])('%# is refused', (value, problem) => {
    expect(read(value)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });

  it('says of a text of a megabyte what is wrong without repeating it', () => {
    const reading = read([{ text: 'x'.repeat(1_000_000) }]);
    expect(JSON.stringify(reading).length).toBeLessThan(500);
    expect(reading).toHaveProperty('problem');
  });

  it('shows a notice from its first moment until its last, and one without times always', () => {
    const notices = [{ text: 'dated', fromMs: 1000, untilMs: 2000 }, { text: 'always' }];
    const at = (nowMs: number) =>
      shownNotices({ ...defaultSettings, notices }, nowMs).map(({ text }) => text);
    expect([999, 1000, 1999, 2000].map(at)).toEqual([
      ['always'],
      ['dated', 'always'],
      ['dated', 'always'],
      ['always'],
    ]);
  });
});
