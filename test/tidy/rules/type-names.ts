/** A channel type is one file and one registry line, a dialect one folder and one line: no other file names them. */
import path from 'node:path';
import { codeOf, isProduct, within, type Source } from '../sources.ts';

const typesFolder = 'shared/upstreams/types';
const dialectsFolder = 'shared/upstreams/dialects';

/** `openai`, `azure`: each file beside the registry. */
export const channelTypeNames = (sources: Source[]): string[] =>
  sources
    .filter(({ folder, file }) => folder === typesFolder && !path.posix.basename(file).startsWith('channel-'))
    .map(({ file }) => path.posix.basename(file, '.ts'));

export const dialectNames = (sources: Source[]): string[] => [
  ...new Set(
    sources
      .filter(({ folder }) => path.posix.dirname(folder) === dialectsFolder)
      .map(({ folder }) => path.posix.basename(folder)),
  ),
];

/** Texts of a source: quoted ones and the parts of templates. */
const textsOf = ({ tokens }: Source): string[] =>
  tokens
    .filter(({ kind }) => kind === 'string' || kind === 'template')
    .map(({ kind, text }) => (kind === 'string' ? text.slice(1, -1) : text));

interface Holders {
  /** Files where the name may be a value. */
  typeNameHolders: Record<string, string>;
  /** Files where it may stand in a longer text. */
  typeNameExamples: Record<string, string>;
}

export function namedChannelTypes(sources: Source[], holders: Holders): string[] {
  return channelTypeNames(sources).flatMap((name) => {
    const word = new RegExp(String.raw`\b${name}\b`);
    const others = sources.filter(isProduct).filter(({ file, folder }) => {
      const own = file === `${typesFolder}/${name}.ts`;
      const registry = folder === typesFolder && path.posix.basename(file).startsWith('channel-');
      return !own && !registry;
    });
    return others
      .filter((source) => {
        const texts = textsOf(source).filter((text) => !source.imports.includes(text));
        const isValue = texts.includes(name) || word.test(codeOf(source));
        const isInText = texts.some((text) => text !== name && word.test(text));
        return (
          (isValue && !holders.typeNameHolders[source.file]) ||
          (isInText && !holders.typeNameExamples[source.file])
        );
      })
      .map(({ file }) => `${file} names the channel type ${name}`);
  });
}

/** Names of dialects are names of endpoints and fields too, so only code that deals with upstreams is looked at. */
const upstreamFolders = [
  'shared/upstreams',
  'shared/config',
  'shared/relay/dispatch',
  'shared/operate/channels',
];

export const namedDialects = (sources: Source[], allowed: Record<string, string>): string[] =>
  dialectNames(sources).flatMap((name) =>
    sources
      .filter(({ folder }) => upstreamFolders.some((each) => within(folder, each)))
      .filter(({ folder }) => !within(folder, `${dialectsFolder}/${name}`) && folder !== dialectsFolder)
      .filter((source) => textsOf(source).includes(name) && !allowed[source.file])
      .map(({ file }) => `${file} names the dialect ${name}`),
  );
