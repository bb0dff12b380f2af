import { describe, expect, it } from 'vitest';
import { readFloors, readLaw } from './law.ts';
import { namedDialects } from './rules/dialect-names.ts';
import { drawers } from './rules/file-names.ts';
import { drawnFolders, undrawnFolders } from './rules/folders.ts';
import { circles, importsOutsideFloors, importsOutsideLaw, layersOutsideLaw } from './rules/imports.ts';
import { impureCore, looseEnds, printing, unopened } from './rules/purity.ts';
import { moduleState } from './rules/state.ts';
import { namedChannelTypes, readOwnAttributes } from './rules/type-names.ts';
import { codeOf, sourceOf, type Source } from './sources.ts';

/** Made-up sources: what each file holds. */
const tree = (files: Record<string, string>): Source[] =>
  Object.entries(files).map(([file, text]) => sourceOf(file, text));
const importing = (...names: string[]): string => names.map((name) => `import '${name}';\n`).join('');

const page = `
| layer | may import | packages |
|---|---|---|
| \`wire\` | nothing | \`zod/mini\` |
| \`billing\` | wire | |
| \`infra\` | billing | \`node:*\` |
`;
const law = readLaw(page);

describe('the scanner', () => {
  it('tells code from comments, texts, templates and patterns', () => {
    const text =
      "a = 'x // y'; // b 'c'\nd = /'\\/[/']/g; e = `f ${g(`h ${i}`, { j: '}' })} k`; l / m; /* n */";
    const source = sourceOf('shared/wire/a.ts', text);
    const kinds = Map.groupBy(source.tokens, ({ kind }) => kind);
    const textsOf = (kind: string): string[] => (kinds.get(kind as 'code') ?? []).map((token) => token.text);
    expect(textsOf('comment')).toEqual(["// b 'c'", '/* n */']);
    expect(textsOf('string')).toEqual(["'x // y'", "'}'"]);
    expect(textsOf('template')).toEqual(['f ', 'h ', '', ' k']);
    expect(textsOf('pattern')).toEqual(["/'\\/[/']/g"]);
    expect(codeOf(source).match(/\b[a-z]\b/g)).toEqual(['a', 'd', 'e', 'g', 'i', 'j', 'l', 'm']);
  });

  it('finds every way to import, and nothing in comments and templates', () => {
    const text = `import type { A } from '../a.ts';
import {
  b,
} from './b.ts';
import './c.ts';
export { d } from 'd';
const e = await import('./e.ts');
// import './f.ts';
const g = \`
import './g.ts';\`;
import "./h.ts";
import { i } from "i";
const j = await import(\`./j.ts\`);
type K = import('./k.ts').K;
const l = require('l');
const m = createRequire(import.meta.url).resolve('m');
const n = import.meta.resolve('n');
export * from './o.ts'; export type * from './p.ts'; const q = path.resolve('q');`;
    const source = sourceOf('shared/wire/x.ts', text);
    const files = ['b', 'c', 'e', 'h', 'j', 'k', 'o', 'p'];
    expect(source.uses.toSorted()).toEqual(['shared/a.ts', ...files.map((name) => `shared/wire/${name}.ts`)]);
    const packages = source.imports.filter((name) => !name.startsWith('.'));
    expect(packages.toSorted()).toEqual(['d', 'i', 'l', 'm', 'n']);
  });
});

describe('imports', () => {
  it('go only where the table says, type imports too', () => {
    const sources = tree({
      'shared/billing/price.ts': `${importing('../wire/usage.ts')}import type { X } from '../config/x.ts';`,
      'shared/wire/usage.ts': importing('zod/mini', 'zod', 'node:fs', '../billing/price.ts'),
      'infra/stack/app.ts': importing(
        'node:fs',
        '../local/main.ts',
        '../../shared/billing/price.ts',
        '../../shared/wire/usage.ts',
      ),
      'test/a.test.ts': importing('../shared/anything.ts'),
    });
    expect(importsOutsideLaw(sources, law)).toEqual([
      'shared/billing/price.ts imports shared/config/x.ts',
      'shared/wire/usage.ts imports shared/billing/price.ts',
      'shared/wire/usage.ts imports zod',
      'shared/wire/usage.ts imports node:fs',
      'infra/stack/app.ts imports shared/wire/usage.ts',
    ]);
  });

  it('need a row for each layer, and files for each row', () => {
    const sources = tree({ 'shared/wire/a.ts': '', 'infra/stack/a.ts': '', 'shared/new/a.ts': '' });
    expect(layersOutsideLaw(sources, law)).toEqual(['new has no row', 'billing holds no file']);
  });

  it('lead to a lower floor of the relay', () => {
    const floors = readFloors(`
| floor | folders and files of relay |
|---|---|
| 1 | \`ports\`, \`gone\` |
| 2 | \`call\`, \`retry\` |
`);
    const sources = tree({
      'shared/relay/ports/a.ts': "import type { X } from '../call/x.ts';",
      'shared/relay/call/x.ts': importing('../ports/a.ts', './y.ts', '../retry.ts', '../../wire/a.ts'),
      'shared/relay/call/y.ts': '',
      'shared/relay/retry.ts': importing('./ports/a.ts'),
      'shared/relay/new.ts': '',
    });
    expect(importsOutsideFloors(sources, floors)).toEqual([
      'shared/relay/ports/a.ts imports shared/relay/call/x.ts',
      'shared/relay/call/x.ts imports shared/relay/retry.ts',
      'new has no floor',
      'gone holds no file',
    ]);
  });

  it('make no circle, of files, of folders or in the table', () => {
    const sources = tree({
      'shared/wire/a.ts': importing('./b.ts'),
      'shared/wire/b.ts': "import type { A } from './a.ts';",
      'shared/wire/c.ts': importing('./a.ts'),
      'shared/billing/one/a.ts': importing('../b.ts'),
      'shared/billing/one/c.ts': '',
      'shared/billing/b.ts': importing('./one/c.ts'),
    });
    const round = readLaw(page.replace('`wire` | nothing', '`wire` | infra'));
    expect(circles(sources, round)).toEqual([
      'files: shared/wire/a.ts <-> shared/wire/b.ts',
      'folders: wire/a <-> wire/b',
      'folders: billing/b <-> billing/one',
      'the table: billing <-> infra <-> wire',
    ]);
  });
});

describe('folders', () => {
  it('are drawn, and what is drawn exists', () => {
    const drawn =
      '```text\nshared/      product\n  wire/      shapes\n  gone/\n    deep/    more\ntest/        tests\n```\n';
    expect(drawnFolders(drawn)).toEqual(['shared', 'shared/wire', 'shared/gone', 'shared/gone/deep', 'test']);
    const sources = tree({ 'shared/wire/a.ts': '', 'shared/new/a.ts': '', 'test/unit/wire/a.ts': '' });
    expect(undrawnFolders(sources, drawn)).toEqual([
      'shared/new is not drawn',
      'test/unit is not drawn',
      'shared/gone is drawn, but holds no source',
      'shared/gone/deep is drawn, but holds no source',
    ]);
  });
});

describe('names of files', () => {
  it('are not those of drawers', () => {
    const sources = tree({ 'shared/wire/index.ts': '', 'shared/wire/utils.ts': '', 'test/helpers.ts': '' });
    expect(drawers(sources)).toEqual(['shared/wire/index.ts', 'shared/wire/utils.ts']);
  });
});

describe('a plug-in is named in its own place alone', () => {
  const holders = {
    typeNameHolders: { 'infra/local/seed.ts': 'data' },
    typeNameExamples: { 'infra/ops/help.ts': 'examples' },
  };

  it('a channel type', () => {
    const sources = tree({
      'shared/upstreams/types/azure.ts': "const name = 'azure';",
      'shared/upstreams/types/channel-types.ts': `${importing('./azure.ts')}export const types = { azure };`,
      'shared/relay/dispatch/a.ts': "if (type === 'azure') {}",
      'shared/relay/dispatch/b.ts': 'types.azure.send()',
      'shared/relay/dispatch/c.ts': 'const text = `for azure alone`;',
      'shared/relay/dispatch/d.ts': '// azure is meant here',
      'shared/relay/dispatch/e.ts': importing('../../upstreams/types/azure.ts'),
      'infra/local/seed.ts': "const type = 'azure';",
      'infra/ops/help.ts': "const help = 'channel new type=azure';",
      'infra/ops/more.ts': "const help = 'channel new type=azure';",
    });
    expect(namedChannelTypes(sources, holders)).toEqual([
      'shared/relay/dispatch/a.ts names the channel type azure',
      'shared/relay/dispatch/b.ts names the channel type azure',
      'shared/relay/dispatch/c.ts names the channel type azure',
      'shared/relay/dispatch/e.ts names the channel type azure',
      'infra/ops/more.ts names the channel type azure',
    ]);
    const value = tree({ 'shared/upstreams/types/azure.ts': '', 'infra/ops/help.ts': "type === 'azure'" });
    expect(namedChannelTypes(value, holders)).toEqual([
      'infra/ops/help.ts names the channel type azure',
      'infra/local/seed.ts needs no leave to name channel types',
    ]);
  });

  it.each([
    "if (channel.type === 'azure') {}",
    "if (channel.type === 'AZURE'.toLowerCase()) {}",
    'const found = isAzureChannel(channel);',
    'send({ azureVersion: 1 });',
    "const key = environment['AZURE_API_KEY'];",
    "const other = import('./azure.ts');",
  ])('a channel type, in any spelling: %s', (text) => {
    const files = ['shared/upstreams/types/channel-attributes.ts', 'shared/upstreams/types/openai.ts'];
    const sources = tree({
      'shared/upstreams/types/azure.ts': '',
      'shared/upstreams/types/channel-types.ts': text,
      ...Object.fromEntries(files.map((file) => [file, text])),
    });
    expect(namedChannelTypes(sources, { typeNameHolders: {}, typeNameExamples: {} })).toEqual(
      files.map((file) => `${file} names the channel type azure`),
    );
  });

  it('a channel type in a pattern, but not in a path of another type', () => {
    const text = 'if (/^azure/.test(channel.type)) {}';
    const sources = tree({
      'shared/upstreams/types/azure.ts': '',
      'shared/upstreams/types/openai.ts': text,
      'shared/upstreams/types/channel-attributes.ts': text,
    });
    expect(namedChannelTypes(sources, { typeNameHolders: {}, typeNameExamples: {} })).toEqual([
      'shared/upstreams/types/channel-attributes.ts names the channel type azure',
    ]);
  });

  it('a vendor in a sentence is no channel type', () => {
    const sources = tree({
      'shared/upstreams/types/openai.ts': '',
      'shared/relay/page/a.ts': "const text = 'An OpenAI-compatible relay.';",
    });
    expect(namedChannelTypes(sources, { typeNameHolders: {}, typeNameExamples: {} })).toEqual([]);
  });

  it.each([
    'send(channel.region);',
    'const { region } = channel;',
    'const { region: place, ...others } = candidate.channel;',
    "send(found['api_version']);",
  ])('an attribute of a channel type: %s', (text) => {
    const setup = 'export const a = { attributes: { region: { about: "" }, api_version: {} } };';
    const sources = tree({
      'shared/upstreams/types/a.ts': setup,
      'shared/upstreams/types/b.ts': text,
      'shared/upstreams/types/channel-attributes.ts': text,
      'shared/relay/dispatch/c.ts': text,
      'shared/adapters/transport/d.ts': 'const { region } = signer; send(scope.region, channel.id);',
    });
    expect(readOwnAttributes(sources)).toEqual([
      expect.stringMatching(/^shared\/upstreams\/types\/channel-attributes.ts reads (region|api_version)/),
      expect.stringMatching(/^shared\/relay\/dispatch\/c.ts reads (region|api_version)/),
    ]);
  });

  it.each([
    "if (dialect === 'messages') {}",
    "if (row['dialect'] === `messages`) {}",
    "switch (row.dialect) { case 'messages': break; }",
    "if (['messages'].includes(dialect)) {}",
    "send(dialects['messages']);",
    "const dialect = 'messages';",
  ])('a dialect, in every folder: %s', (text) => {
    const sources = tree({
      'shared/upstreams/dialects/messages/request.ts': text,
      'shared/upstreams/dialects/dialects.ts': text,
      'shared/operate/keys/a.ts': text,
      'infra/ops/cli/b.ts': text,
      'shared/operate/keys/c.ts': "if (field === 'messages') send(request.messages, channel.dialect);",
      'test/d.ts': text,
    });
    expect(namedDialects(sources, {})).toEqual([
      'shared/operate/keys/a.ts names the dialect messages',
      'infra/ops/cli/b.ts names the dialect messages',
    ]);
  });

  it('a dialect', () => {
    const sources = tree({
      'shared/upstreams/dialects/messages/request.ts': "const own = 'messages';",
      'shared/upstreams/dialects/dialects.ts': "const registry = { ['messages']: messages };",
      'shared/relay/dispatch/a.ts': "if (dialect === 'messages') {}",
      'shared/upstreams/types/b.ts': "const fields = ['messages'];",
      'shared/endpoints/c.ts': "const field = 'messages';",
    });
    expect(namedDialects(sources, { 'shared/upstreams/types/b.ts': 'a field' })).toEqual([
      'shared/relay/dispatch/a.ts names the dialect messages',
    ]);
  });
});

describe('code', () => {
  it.each([
    ['Date.now()', 'Date.now'],
    ["Date['now']()", 'Date.now'],
    ['new Date()', 'Date'],
    ['performance.now()', 'performance'],
    ['Math.random()', 'Math.random'],
    ['Math[name]', 'Math.undefined'],
    ['process.env', 'process'],
    ['fetch(url)', 'fetch'],
    ['send ?? fetch', 'fetch'],
    ['globalThis.fetch(url)', 'globalThis'],
    ['AbortSignal.timeout(1)', 'AbortSignal.timeout'],
    ['setTimeout(f)', 'setTimeout'],
    ['crypto.randomUUID()', 'crypto'],
    ['console.log(1)', 'console'],
  ])('of the core does not reach %s', (reach, name) => {
    const text = `const found = ${reach};`;
    const comment = `/** ${reach} */ const text = "${reach}";`;
    const sources = tree({
      'shared/relay/call/a.ts': text,
      'shared/operate/keys/b.ts': text,
      'shared/relay/call/c.ts': comment,
      'shared/adapters/system/d.ts': text,
    });
    expect(impureCore(sources)).toEqual([
      `shared/relay/call/a.ts uses ${name}`,
      `shared/operate/keys/b.ts uses ${name}`,
    ]);
  });

  it.each(['const { env } = process;', 'const { now } = Date;', 'const { random: chance } = Math;'])(
    'of the core takes nothing out of what it must not reach: %s',
    (text) => expect(impureCore(tree({ 'shared/relay/call/a.ts': text }))).toHaveLength(1),
  );

  it('of the core has names of its own, and pure parts of what it must not reach', () => {
    const text = `
      interface Ports { now(): number; fetch: () => Date; signal: AbortSignal; process?: string }
      const { now, fetch: send } = ports;
      const at = [clock.now(), clock.performance, new Date(1), Date.parse('x'), Date.UTC(1), Math.max(1)];
      const until = { process: AbortSignal.any([signal]), crypto() {}, isDate: at instanceof Date };`;
    expect(impureCore(tree({ 'shared/relay/call/a.ts': text }))).toEqual([]);
  });

  it.each(['TO|DO', 'FIX|ME', '@ts-|ignore', 'x as |any', 'it.on|ly('])('has no loose end: %s', (halves) => {
    expect(looseEnds(tree({ 'test/a.ts': halves.replace('|', ''), 'test/b.ts': '' }))).toEqual(['test/a.ts']);
  });

  it.each([
    "console.log('x')",
    'const { log } = console;',
    "process.stdout.write('x')",
    "process['stderr'].write('x')",
    'const { stdout } = process;',
    "import { stdout as out } from 'node:process';",
    "import { log } from 'node:console';",
    'globalThis.console.log(1)',
    "global['console'].log(1)",
  ])('prints only where that is its task: %s', (text) => {
    const sources = tree({
      'shared/operate/a.ts': text,
      'functions/b.ts': text,
      'infra/ops/session/c.ts': text,
      'infra/ops/cli/main.ts': text,
      'infra/build/d.ts': text,
      'infra/build/e.ts': "// console.log('x')",
      'test/f.ts': text,
    });
    const printers = { 'infra/ops/cli/main.ts': 'a', 'infra/build/': 'b', 'infra/stack/': 'c' };
    expect(printing(sources, printers)).toEqual([
      'shared/operate/a.ts',
      'functions/b.ts',
      'infra/ops/session/c.ts',
      'infra/stack/ needs no leave to print',
    ]);
  });

  it.each([
    'let kept;',
    'export let kept = 1;',
    'const kept = new Map(); export const f = (a) => { kept.set(a, 1); };',
    'export const kept = []; const f = () => kept.push(1);',
    'const kept = { count: 0 }; const f = () => { kept.count += 1; };',
    'const kept = {}; function f() { delete kept.a.b; }',
    "const kept = {}; const f = () => { kept['a'] = 1; };",
    'const kept = {}; const f = () => Object.assign(kept, { a: 1 });',
    'const kept = new Map(); const f = (a) => keepNewest(kept, 9, a, 1);',
  ])('keeps nothing for the whole module: %s', (text) => {
    const sources = tree({ 'shared/wire/a.ts': text, 'infra/local/main.ts': text, 'test/b.ts': text });
    expect(moduleState(sources, { 'infra/local/main.ts': 'a', 'infra/local/c.ts': 'b' })).toEqual([
      'shared/wire/a.ts keeps kept for the whole module',
      'infra/local/c.ts needs no leave to keep state',
    ]);
  });

  it('may keep what never changes, and what a function makes', () => {
    const text = `
      const names = new Map([['a', 1]]); const list = ['a'];
      class Count { static readonly max = 1; #count = 0; }
      export function f() { let count = 0; const seen = new Set(); seen.add(names.get('a')); count += 1; list.map(String); }
      for (let at = 0; at < 1; at += 1) f();`;
    expect(moduleState(tree({ 'shared/wire/a.ts': text }), {})).toEqual([]);
    const text2 = 'class Count { static count = 0; }';
    expect(moduleState(tree({ 'shared/wire/a.ts': text2 }), {})).toHaveLength(1);
  });

  it('opens with what the file is for, before its imports', () => {
    const sources = tree({
      'shared/relay/a.ts': "/** Decides. */\nimport './b.ts';",
      'shared/relay/b.ts': "import './a.ts';\n/** Decides. */",
      'infra/ops/cli/c.ts': '#!/usr/bin/env node\n/**\n * Runs.\n */',
      'infra/ops/cli/d.ts': '// Runs.',
      'shared/wire/e.ts': '',
    });
    expect(unopened(sources)).toEqual(['shared/relay/b.ts', 'infra/ops/cli/d.ts']);
  });
});
