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

const isRegistry = ({ folder, file }: Source): boolean =>
  folder === typesFolder && path.posix.basename(file).startsWith('channel-');

/** How a source names a type: as a value or a name in code, or inside a longer text. */
function naming(source: Source, name: string): { asValue: boolean; inText: boolean } {
  const word = new RegExp(String.raw`\b${name}\b`);
  const texts = textsOf(source).filter((text) => !source.imports.includes(text));
  return {
    asValue: texts.includes(name) || word.test(codeOf(source)),
    // Paths of vendors have names of other vendors in them.
    inText: source.folder !== typesFolder && texts.some((text) => text !== name && word.test(text)),
  };
}

export function namedChannelTypes(sources: Source[], holders: Holders): string[] {
  const names = channelTypeNames(sources);
  const others = sources.filter((source) => isProduct(source) && !isRegistry(source));
  const used = new Set<string>();
  const found = others.flatMap((source) =>
    names
      .filter((name) => source.file !== `${typesFolder}/${name}.ts`)
      .filter((name) => {
        const { asValue, inText } = naming(source, name);
        if (asValue || inText) used.add(source.file);
        const mayBeValue = source.file in holders.typeNameHolders;
        return (
          (asValue && !mayBeValue) || (inText && !mayBeValue && !(source.file in holders.typeNameExamples))
        );
      })
      .map((name) => `${source.file} names the channel type ${name}`),
  );
  const needless = Object.keys({ ...holders.typeNameHolders, ...holders.typeNameExamples })
    .filter((file) => !used.has(file))
    .map((file) => `${file} needs no leave to name channel types`);
  return [...found, ...needless];
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
