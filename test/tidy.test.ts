import { describe, expect, it } from 'vitest';
import { readPage, root } from './docs/pages.ts';
import {
  dialectNameHolders,
  printers,
  stateHolders,
  typeNameExamples,
  typeNameHolders,
} from './tidy/house.ts';
import { readFloors, readLaw } from './tidy/law.ts';
import { namedDialects } from './tidy/rules/dialect-names.ts';
import { drawers } from './tidy/rules/file-names.ts';
import { undrawnFolders } from './tidy/rules/folders.ts';
import { circles, importsOutsideFloors, importsOutsideLaw, layersOutsideLaw } from './tidy/rules/imports.ts';
import { impureCore, looseEnds, printing, unopened } from './tidy/rules/purity.ts';
import { moduleState } from './tidy/rules/state.ts';
import { namedChannelTypes, readOwnAttributes } from './tidy/rules/type-names.ts';
import { readSources } from './tidy/sources.ts';

const law = readLaw(readPage('docs/architecture.md'));
const sources = readSources(root, ['shared', 'functions', 'infra', 'test']);

const rules: Record<string, () => string[] | Promise<string[]>> = {
  'imports run one way, and each layer uses only its own packages': () => importsOutsideLaw(sources, law),
  'every layer has its row in the table of what may import what': () => layersOutsideLaw(sources, law),
  'inside the relay imports lead to a lower floor': () =>
    importsOutsideFloors(sources, readFloors(readPage('docs/architecture.md'))),
  'neither files nor folders import each other in a circle': () => circles(sources, law),
  'AGENTS.md draws the folders that there are': () => undrawnFolders(sources, readPage('AGENTS.md')),
  'no folder is a barrel or a drawer': () => drawers(sources),
  'no channel type is named outside its file and the registry': () =>
    namedChannelTypes(sources, { typeNameHolders, typeNameExamples }),
  'no attribute of a channel type is read outside the types': () => readOwnAttributes(sources),
  'no dialect is named outside its folder and the registry': () => namedDialects(sources, dialectNameHolders),
  'the core sees no clock, no random, no environment and no network': () => impureCore(sources),
  'no source has a loose end': () => looseEnds(sources),
  'nothing but the tools and the log prints': () => printing(sources, printers),
  'no module keeps state': () => moduleState(sources, stateHolders),
  'a file says first what it is for': () => unopened(sources),
};

describe('the code keeps to its design', () => {
  it.each(Object.keys(rules))('%s', async (name) => {
    expect(await rules[name]?.()).toEqual([]);
  });
});
