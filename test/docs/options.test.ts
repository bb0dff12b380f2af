import { describe, expect, it } from 'vitest';
import { readOptions, resolveStage } from '../../infra/stack/options/read-options.ts';
import { findRegionProblem } from '../../infra/stack/options/streaming-regions.ts';
import { optionsInPage, optionsList } from '../scripts/options-list.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/options.md');

describe('docs/options.md', () => {
  it('lists all existing options: node test/scripts/options-list.ts writes it', () => {
    expect(optionsInPage.exec(page)?.[0]).toBe(optionsList());
  });

  it('shows a file that the reader accepts', () => {
    const example = /^ {4}\{\n(?: {4}.*\n)+? {4}\}$/m.exec(page)?.[0] ?? '';
    const content: unknown = JSON.parse(example);
    expect(readOptions(resolveStage(undefined), content)).toHaveProperty('domain');
  });

  it('names exactly the rejected regions', () => {
    const listed = /Regions without Function URLs are\s+refused:([^]*?)\(AWS Lambda/.exec(page)?.[1] ?? '';
    const regions = listed.match(/\b[a-z]{2}-[a-z]+-\d\b/g) ?? [];
    expect(regions).toHaveLength(11);
    expect(regions.filter((region) => findRegionProblem(region) === undefined)).toEqual([]);
    expect(['us-east-1', 'eu-central-1', 'ap-southeast-1'].map(findRegionProblem)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
