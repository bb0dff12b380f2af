import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';

const read = (value: unknown) => readSetting({ name: 'search', value }, { local: false });

describe('the setting search', () => {
  it('has an address of its own for Tavily, and a number of results', () => {
    expect(read({ type: 'tavily' })).toEqual({
      row: { search: { type: 'tavily', endpoint: 'https://api.tavily.com', results: 5 } },
    });
  });

  it.each([
    [
      { type: 'bing', endpoint: 'https://a.example.com' },
      /^value\.type: found "bing", wanted "searxng" or "tavily"/,
    ],
    [{ type: 'searxng' }, /^value\.endpoint: found nothing/],
    [{ type: 'searxng', endpoint: 'http://search.example.com' }, /^value\.endpoint: found http/],
    [{ type: 'searxng', endpoint: 'https://169.254.169.254/' }, /^value\.endpoint: found 169/],
    [{ type: 'searxng', endpoint: 'http://127.0.0.1:8080' }, /^value\.endpoint: .*this machine itself/],
    [
      { type: 'tavily', secret: 'tvly-dev-canary' },
      /^value\.secret: found a value that is not a reference(?!.*canary)/,
    ],
    [{ type: 'tavily', results: 11 }, /^value\.results: found 11, wanted a whole number from 1 to 10/],
    [{ type: 'tavily', language: 'en' }, /^value\.language: /],
    [{ type: 'tavily', depth: 'advanced' }, /^value\.depth: found, but not known here/],
    ['https://search.example.com', /^value: found .*wanted a map/],
  ])('%j is refused', (value, problem) => {
    expect(read(value)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });
});
