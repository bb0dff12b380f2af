import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { pages, readPage, root } from './docs/pages.ts';
import { countsOf } from './tidy/counts.ts';
import {
  notPorts,
  dialectNameHolders,
  parallelSets,
  printers,
  smallFolders,
  stateHolders,
  typeNameExamples,
  typeNameHolders,
} from './tidy/house.ts';
import { readLaw } from './tidy/law.ts';
import { namedDialects } from './tidy/rules/dialect-names.ts';
import { drawers, missingParallels, portsWithoutAdapter, repeatedNames } from './tidy/rules/file-names.ts';
import { folderSizes, undrawnFolders } from './tidy/rules/folders.ts';
import {
  circles,
  foldersOutsideLaw,
  importsOutsideLaw,
  longChains,
  unusedPermissions,
} from './tidy/rules/imports.ts';
import { impureCore, looseEnds, printing, unopened } from './tidy/rules/purity.ts';
import { moduleState } from './tidy/rules/state.ts';
import { largeOrWide, medianLines } from './tidy/rules/sizes.ts';
import { namedChannelTypes, readOwnAttributes } from './tidy/rules/type-names.ts';
import { bannedInPages, bannedInSources, needlessExceptions } from './tidy/rules/words.ts';
import { readSources } from './tidy/sources.ts';
import { bannedWords } from './tidy/words.ts';

const law = readLaw(readPage('docs/architecture.md'));
const sources = readSources(root, ['shared', 'functions', 'infra', 'test']);
const prose = pages
  .filter((file) => file !== 'docs/CHANGELOG.md')
  .map((file) => ({ file, text: readPage(file) }));

const rules: Record<string, () => string[] | Promise<string[]>> = {
  'imports run one way, and each layer uses only its own packages': () => importsOutsideLaw(sources, law),
  'the tables permit nothing that no file makes use of': () => unusedPermissions(sources, law),
  'every folder has its row in the table of what may import what': () => foldersOutsideLaw(sources, law),
  'neither files nor folders import each other in a circle': () => circles(sources, law),
  'no chain of imports inside a folder of shared is longer than eight files': () => longChains(sources),
  'a folder has 3 to 15 files': () => folderSizes(sources, { parallelSets, smallFolders }),
  'AGENTS.md draws the folders that there are': () => undrawnFolders(sources, readPage('AGENTS.md')),
  'parallel folders hold parallel names': () => missingParallels(sources, parallelSets),
  'two files of shared share no name': () => repeatedNames(sources, parallelSets),
  'an adapter is named after its port': () => portsWithoutAdapter(sources, notPorts),
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
  'code, tests and comments use plain words': () => [
    ...bannedInSources(sources, bannedWords),
    ...needlessExceptions(sources, bannedWords),
  ],
  'pages use plain words': () => bannedInPages(prose, bannedWords),
  'files and functions stay small, with three parameters at most': () =>
    largeOrWide((parameters) =>
      promisify(execFile)(path.join(root, 'node_modules/.bin/oxlint'), parameters, { cwd: root }),
    ),
};

afterAll(() => {
  console.log(countsOf(sources, law, process.env['TIDY_COUNTS'] ? 'folder' : 'layer'));
});

describe('the code keeps to its design', () => {
  it.each(Object.keys(rules))('%s', async (name) => {
    expect(await rules[name]?.()).toEqual([]);
  });

  it('half of the files have 60 lines or fewer', () => {
    expect(medianLines(sources)).toBeLessThanOrEqual(60);
  });
});
