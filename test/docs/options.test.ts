import { describe, expect, it } from 'vitest';
import { optionTable } from '../../infra/stack/options/option-table.ts';
import { readOptions, stageNamed } from '../../infra/stack/options/read-options.ts';
import { regionProblem } from '../../infra/stack/options/streaming-regions.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/options.md');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((part) => part.trim()));

describe('docs/options.md', () => {
  it('has every option with its default', () => {
    const documented = Object.fromEntries(
      rows.map(([, name, standard]) => [name?.replaceAll('`', ''), standard]),
    );
    const known = Object.entries(optionTable).map(([name, option]) => [
      name,
      'default' in option ? `\`${JSON.stringify(option.default).replaceAll(',', ', ')}\`` : '',
    ]);
    expect(documented).toEqual(Object.fromEntries(known));
  });

  it('shows a file that the reader takes', () => {
    const example = /^ {4}\{\n(?: {4}.*\n)+? {4}\}$/m.exec(page)?.[0] ?? '';
    const content: unknown = JSON.parse(example);
    expect(readOptions(stageNamed(undefined), content)).toHaveProperty('domain');
  });

  it('names the regions that are refused, and no other', () => {
    const listed = /Refused are the\s+regions([^]*?)\(AWS Lambda/.exec(page)?.[1] ?? '';
    const regions = listed.match(/\b[a-z]{2}-[a-z]+-\d\b/g) ?? [];
    expect(regions).toHaveLength(11);
    expect(regions.filter((region) => regionProblem(region) === undefined)).toEqual([]);
    expect(['us-east-1', 'eu-central-1', 'ap-southeast-1'].map(regionProblem)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
