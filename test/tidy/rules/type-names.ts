/** A channel type is one file and one registry line: no other file names it or reads what only its rows have. */
import path from 'node:path';
import { codeOf, isProduct, textsOf, type Source } from '../sources.ts';
import { isNode, lastName, nameOf, propertyOf, textOf, type SyntaxNode } from '../syntax.ts';

const typesFolder = 'shared/upstreams/types';

/** `openai`, `azure`: each file beside the registry. */
export const channelTypeNames = (sources: Source[]): string[] =>
  sources
    .filter(({ folder, file }) => folder === typesFolder && !path.posix.basename(file).startsWith('channel-'))
    .map(({ file }) => path.posix.basename(file, '.ts'));

interface Holders {
  /** Files where the name may be a value. */
  typeNameHolders: Record<string, string>;
  /** Files where it may stand in a longer text. */
  typeNameExamples: Record<string, string>;
}

const registry = `${typesFolder}/channel-types.ts`;
const isOwnFile = ({ file }: Source, names: string[]): boolean =>
  names.some((name) => file === `${typesFolder}/${name}.ts`);

/**
 * How a source names a type: as a value or as part of a name in code, or inside a longer text or a pattern. A
 * vendor's own spelling in a sentence, as in "OpenAI-compatible", is no name of a type.
 */
function naming(source: Source, name: string): { asValue: boolean; inText: boolean } {
  const part = new RegExp(name, 'i');
  const texts = textsOf(source).filter((text) => !source.imports.includes(text));
  const isName = (text: string): boolean => /^[\w-]+$/.test(text);
  const word = new RegExp(String.raw`\b${name}\b`);
  return {
    asValue:
      texts.some((text) => isName(text) && part.test(text)) ||
      part.test(codeOf(source)) ||
      source.uses.includes(`${typesFolder}/${name}.ts`),
    inText:
      texts.some((text) => !isName(text) && word.test(text)) ||
      source.tokens.some(({ kind, text }) => kind === 'pattern' && part.test(text)),
  };
}

export function namedChannelTypes(sources: Source[], holders: Holders): string[] {
  const names = channelTypeNames(sources);
  const others = sources.filter((source) => isProduct(source) && source.file !== registry);
  const used = new Set<string>();
  const found = others.flatMap((source) =>
    names
      .filter((name) => source.file !== `${typesFolder}/${name}.ts`)
      .filter((name) => {
        const { asValue, ...texts } = naming(source, name);
        // Paths of vendors have names of other vendors in them.
        const inText = texts.inText && !isOwnFile(source, names);
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

/** `api_version`, `region`: what only some types have, from the `attributes` of their setups. */
export const ownAttributeNames = (sources: Source[]): string[] => [
  ...new Set(
    sources
      .filter(({ folder }) => folder === typesFolder)
      .flatMap(({ places }) => places)
      .filter(({ node }) => node.type === 'Property' && nameOf(node['key']) === 'attributes')
      .flatMap(({ node }) => ((node['value'] as SyntaxNode)['properties'] ?? []) as SyntaxNode[])
      .flatMap(({ key }) => nameOf(key) ?? []),
  ),
];

const isChannel = (node: unknown): boolean => /(channel|row)$/i.test(lastName(node));

const keysOf = ({ properties }: SyntaxNode): string[] =>
  (properties as SyntaxNode[]).flatMap(({ key }) => nameOf(key) ?? textOf(key) ?? []);

/** Attributes that a node reads of a channel's row. */
function readOfChannel({ type, object, id, init, ...others }: SyntaxNode): string[] {
  if (type === 'MemberExpression' && isChannel(object))
    return [propertyOf({ type, object, ...others }) ?? ''];
  const isTaken = type === 'VariableDeclarator' && isChannel(init);
  return isTaken && isNode(id) && id.type === 'ObjectPattern' ? keysOf(id) : [];
}

/** Files beside the types that read an attribute which only some types have. */
export function readOwnAttributes(sources: Source[]): string[] {
  const names = ownAttributeNames(sources);
  return sources
    .filter((source) => isProduct(source) && !isOwnFile(source, channelTypeNames(sources)))
    .flatMap(({ file, places }) => {
      const read = new Set(places.flatMap(({ node }) => readOfChannel(node)));
      // A name of two words is no other thing's.
      const named = new Set(places.flatMap(({ node }) => nameOf(node) ?? textOf(node) ?? []));
      const found = names.filter((name) => read.has(name) || (name.includes('_') && named.has(name)));
      return found.map((name) => `${file} reads ${name}, which only some channel types have`);
    });
}
