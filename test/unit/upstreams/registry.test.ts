import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { channelTypeNames } from '../../../shared/upstreams/types/channel-attributes.ts';
import { channelSetups } from '../../../shared/upstreams/types/channel-types.ts';

const root = path.join(import.meta.dirname, '..', '..', '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

interface Setup {
  attributes: object;
}

/** Attributes that a type declares differently than an earlier type. */
function declaredDifferently(setups: Record<string, Setup>): string[] {
  const declared = new Map<string, unknown>();
  return Object.entries(setups).flatMap(([type, { attributes }]) =>
    Object.entries(attributes).flatMap(([name, attribute]) => {
      const first = declared.get(name) ?? attribute;
      declared.set(name, first);
      return isDeepStrictEqual(first, attribute) ? [] : [`${type}: ${name}`];
    }),
  );
}

describe('a channel type', () => {
  it('has its line and its section in docs/channels.md, and its name in docs/tables.md', () => {
    const [channels, tables] = ['docs/channels.md', 'docs/tables.md'].map(read);
    for (const name of channelTypeNames) {
      expect(channels).toMatch(new RegExp(`\\n\\| \`${name}\` +\\| `));
      expect(tables).toContain(`\`"${name}"\``);
    }
  });

  it('declares a shared attribute as the other types do', () => {
    expect(declaredDifferently(channelSetups)).toEqual([]);
  });
});
