/** A dialect is one folder and one registry line: no other file names it. */
import path from 'node:path';
import { isProduct, textsOf, within, type Source } from '../sources.ts';
import { lastName, placesIn, propertyOf, textOf, type Place, type SyntaxNode } from '../syntax.ts';

const dialectsFolder = 'shared/upstreams/dialects';

export const dialectNames = (sources: Source[]): string[] => [
  ...new Set(
    sources
      .filter(({ folder }) => path.posix.dirname(folder) === dialectsFolder)
      .map(({ folder }) => path.posix.basename(folder)),
  ),
];

const isDialect = ({ node }: Place): boolean => /dialect/i.test(lastName(node));
const deciding = new Set([
  'BinaryExpression',
  'SwitchStatement',
  'CallExpression',
  'MemberExpression',
  'VariableDeclarator',
  'Property',
]);

/** The parts of a node that decide: of a switch what it looks at and its cases, without what it does. */
const decidingParts = (node: SyntaxNode): Place[] =>
  node.type === 'SwitchStatement'
    ? placesIn({
        type: 'Switch',
        parts: [node['discriminant'], ...(node['cases'] as SyntaxNode[]).map(({ test }) => test)],
      })
    : placesIn(node);

/** Not a call with a whole function in it, which may name both for different reasons. */
const isShort = ({ start, end }: SyntaxNode): boolean => Number(end) - Number(start) < 120;

/** Whether something called a dialect is compared with a name, looked up by it, or given it. */
const decidesByDialect = ({ text, places }: Source, name: string): boolean =>
  text.includes(name) &&
  places.some(({ node }) => {
    if (!deciding.has(node.type) || !(isShort(node) || node.type === 'SwitchStatement')) return false;
    const parts = decidingParts(node);
    const isNamed = parts.some((part) => textOf(part.node) === name);
    const isMember = node.type === 'MemberExpression' && propertyOf(node) === name;
    return (isNamed || isMember) && parts.some(isDialect);
  });

/** Names of dialects are names of endpoints and fields too, so a text alone counts only in code that deals with upstreams. */
const upstreamFolders = [
  'shared/upstreams',
  'shared/config',
  'shared/relay/dispatch',
  'shared/operate/channels',
];

export const namedDialects = (sources: Source[], allowed: Record<string, string>): string[] =>
  dialectNames(sources).flatMap((name) =>
    sources
      .filter(isProduct)
      .filter(({ folder }) => !within(folder, `${dialectsFolder}/${name}`) && folder !== dialectsFolder)
      .filter(({ file }) => !allowed[file])
      .filter(
        (source) =>
          (upstreamFolders.some((each) => within(source.folder, each)) && textsOf(source).includes(name)) ||
          decidesByDialect(source, name),
      )
      .map(({ file }) => `${file} names the dialect ${name}`),
  );
