/** What code may reach: the core sees no clock, no random, no environment and no network; nobody prints from it. */
import { codeOf, isProduct, within, type Source } from '../sources.ts';

const core = ['tables', 'wire', 'stream', 'endpoints', 'upstreams', 'billing', 'config', 'relay', 'operate'];
const reach =
  /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.|\bfetch\(|\bsetTimeout\(|\bsetInterval\(|\bcrypto\./;

export const impureCore = (sources: Source[]): string[] =>
  sources
    .filter(({ folder }) => core.some((name) => within(folder, `shared/${name}`)))
    .flatMap((source) => {
      const found = reach.exec(codeOf(source))?.[0];
      return found ? [`${source.file} uses ${found.replace('(', '')}`] : [];
    });

// In halves, so that this file does not find itself.
const halves = [
  'TO|DO',
  'FIX|ME',
  'X|XX',
  '@ts-|ignore',
  '@ts-|expect-error',
  'as |any\\b',
  ': |any\\b',
  '\\.on|ly\\(',
];
const loose = new RegExp(halves.map((half) => half.replace('|', '')).join('|'));

export const looseEnds = (sources: Source[]): string[] =>
  sources.filter(({ text }) => loose.test(text)).map(({ file }) => file);

export const printing = (sources: Source[]): string[] =>
  sources
    .filter((source) => isProduct(source) && !within(source.folder, 'infra'))
    .filter((source) => codeOf(source).includes('console.'))
    .map(({ file }) => file);

const opened = ['shared/relay', 'shared/adapters', 'shared/upstreams', 'shared/operate', 'infra/ops'];

/** Each file of these folders says first what it is for, before its imports. */
export const unopened = (sources: Source[]): string[] =>
  sources
    .filter(({ folder }) => opened.some((name) => within(folder, name)))
    .filter(({ text }) => !/^(#!.*\n)?\/\*\*\s+(\*\s+)?\w/.test(text))
    .map(({ file }) => file);
