import { describe, expect, it } from 'vitest';
import { refuse, type RefusalCode } from '../../shared/relay/http/refusal.ts';
import { labelsIn, linesOf, testFileOf } from './named-tests.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/conformance.md');
const rows = linesOf(page);

describe('docs/conformance.md', () => {
  it('names test files that exist', () => {
    for (const label of new Set(rows.flatMap(labelsIn))) expect(testFileOf(label)).toMatch(/^test/);
  });

  it('has a test file for every line of the contract, or a reason why it lacks one', () => {
    const contract = page.slice(0, page.indexOf('## Where the contract says'));
    const lines = linesOf(contract).filter((line) => !/^\| (contract|field|---)/.test(line));
    expect(lines.length).toBeGreaterThan(50);
    const unshown = lines.filter((line) => labelsIn(line).length === 0);
    expect(unshown.filter((line) => !line.includes('see ['))).toEqual([]);
  });

  it('lists every refusal of the relay under its status and type', () => {
    const listed = page.split(/^The type `(\w+_error)`:$/m).slice(1);
    const codes = new Map(
      listed.flatMap((type, at) => {
        if (at % 2 === 1) return [];
        return linesOf(String(listed[at + 1]).split('\n## ')[0] ?? '').flatMap((line) => {
          const [, statuses = '', names = ''] = /^- (.*?) (`.*?): /.exec(line) ?? [];
          const numbers = statuses.match(/\d+/g) ?? [];
          return [...names.matchAll(/`(\w+)`/g)].map(
            ([, code], position) =>
              [code as RefusalCode, `${numbers[position] ?? numbers[0]} ${type}`] as const,
          );
        });
      }),
    );
    const bodyFields =
      /^(missing_required_parameter|invalid_(type|value|idempotency_key)|invalid_(image_)?url|unsupported_(content|parameter)|unknown_parameter|key_not_usable|conversation_too_long|upstream_refused)$/;
    for (const [code, expected] of codes) {
      if (bodyFields.test(code)) continue;
      const { status, body } = refuse(code, '');
      expect(`${code}: ${status} ${body.error.type}`).toBe(`${code}: ${expected}`);
    }
    const source = readPage('shared/relay/http/refusal.ts');
    const every = [...source.matchAll(/^ {2}(\w+): \[\d{3}, /gm)].map((match) => String(match[1]));
    expect(every.length).toBeGreaterThan(15);
    expect(every.filter((code) => !codes.has(code as RefusalCode))).toEqual([]);
  });
});
