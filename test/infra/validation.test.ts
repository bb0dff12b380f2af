import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { optionSets } from './option-sets.ts';
import { synthesize } from './synthesize.ts';

let printed: string[];

beforeEach(() => {
  printed = [];
  const record = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  vi.spyOn(process.stderr, 'write').mockImplementation(record);
  vi.spyOn(console, 'error').mockImplementation(record);
  vi.spyOn(console, 'warn').mockImplementation(record);
});

afterEach(() => {
  vi.restoreAllMocks();
});

test.each(Object.entries(optionSets))(
  'a stack with %s has no finding by CloudFormation’s rules or cdk-nag, nor a warning',
  (_name, options) => {
    expect(() => synthesize(options, true)).not.toThrow();
    expect(printed).toEqual([]);
  },
);
