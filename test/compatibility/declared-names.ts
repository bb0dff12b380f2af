/**
 * The members of interfaces and classes, read from the sources because types don't exist at run time. A type of the repository is
 * replaced by its members, so that a new name for an inner type changes nothing. A type of a package stays as it is written.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAst } from 'vitest/node';
import { isNode, nameOf, textOf, type SyntaxNode } from '../tidy/syntax.ts';

/** Maps a member's path to its alternatives: `budget.email` to `string | undefined`. */
export type Names = Record<string, string>;

interface Place {
  file: string;
  text: string;
  body: SyntaxNode[];
}

interface Found {
  place: Place;
  node: SyntaxNode;
}

/** Deeper members are rare, and types that contain themselves must end. */
const depthMax = 4;

const places = new Map<string, Place>();

function placeOf(file: string): Place {
  const known = places.get(file);
  if (known) return known;
  const text = readFileSync(file, 'utf8');
  const { body } = parseAst(text, { lang: 'ts' }) as unknown as { body: SyntaxNode[] };
  const place = { file, text, body };
  places.set(file, place);
  return place;
}

const nodesOf = (value: unknown): SyntaxNode[] => (Array.isArray(value) ? value.filter(isNode) : []);
const sourceOf = ({ text }: Place, { start, end }: SyntaxNode): string =>
  text.slice(Number(start), Number(end)).replaceAll(/\s+/g, ' ');

/** The names that a file exports, types too, each with its declaration. */
export function exportsOf(file: string): Map<string, Found> {
  const place = placeOf(file);
  const exported = place.body.filter(({ type }) => type === 'ExportNamedDeclaration');
  const names = exported.flatMap(({ declaration, specifiers }) =>
    isNode(declaration)
      ? nameOf(declaration['id'])
      : nodesOf(specifiers).map(({ exported: name }) => nameOf(name)),
  );
  return new Map(
    names.flatMap((name) => {
      const found = name === undefined ? undefined : findDeclaration(place, name);
      return name === undefined || found === undefined ? [] : [[name, found] as const];
    }),
  );
}

/** Finds a type where it is declared, in this file or in one that it imports. */
function findDeclaration(place: Place, name: string): Found | undefined {
  for (const node of place.body) {
    const declared = isNode(node['declaration']) ? node['declaration'] : node;
    if (/^(TSInterface|TSTypeAlias|Class)Declaration$/.test(declared.type) && nameOf(declared['id']) === name)
      return { place, node: declared };
    const source = node.type === 'ImportDeclaration' ? (textOf(node['source']) ?? '') : '';
    const specifier = nodesOf(node['specifiers']).find(({ local }) => nameOf(local) === name);
    if (specifier && source.startsWith('.'))
      return findDeclaration(
        placeOf(path.join(path.dirname(place.file), source)),
        nameOf(specifier['imported']) ?? name,
      );
  }
  return undefined;
}

export function membersOf({ place, node }: Found, depth = 0): Names {
  if (node.type === 'TSTypeAliasDeclaration') return typeMembers(node['typeAnnotation'], place, depth);
  const heritage = nodesOf(node['extends']).map((parent) => ({
    type: 'TSTypeReference',
    typeName: parent['expression'],
    typeArguments: parent['typeArguments'],
  }));
  const members = nodesOf((node['body'] as SyntaxNode)['body']);
  return Object.assign(
    {},
    ...heritage.map((parent) => typeMembers(parent, place, depth)),
    ...members.map((member) => memberNames(member, place, depth)),
  ) as Names;
}

function memberNames(member: SyntaxNode, place: Place, depth: number): Names {
  const name = nameOf(member['key']);
  const isHidden = member['accessibility'] === 'private' || keyType(member).startsWith('Private');
  // Apps construct only what the package exports.
  if (name === undefined || isHidden || (name === 'constructor' && depth > 0)) return {};
  const method = isNode(member['value']) && member.type.startsWith('Method') ? member['value'] : member;
  const parameters = nodesOf(method['params']).map((each) => sourceOf(place, each).replace(/ = .*/, ''));
  const written = (method['typeAnnotation'] ?? method['returnType']) as SyntaxNode | undefined;
  const type = written?.['typeAnnotation'];
  const own = isNode(type) ? alternativesOf(type, place, depth) : ['void'];
  const all = /^(TS)?Method/.test(member.type) ? [`(${parameters.join(', ')}) => ${own.join(' | ')}`] : own;
  const optional = member['optional'] === true ? ['undefined'] : [];
  const inner = Object.entries(typeMembers(type, place, depth + 1));
  return {
    [name]: [...new Set([...all, ...optional])].join(' | '),
    ...Object.fromEntries(inner.map(([each, text]) => [`${name}.${each}`, text])),
  };
}

const keyType = ({ key }: SyntaxNode): string => (isNode(key) ? key.type : '');

/** The alternatives of a type. A map of the repository is `{}`: its members have their own lines. */
function alternativesOf(type: SyntaxNode, place: Place, depth: number): string[] {
  if (type.type === 'TSUnionType')
    return nodesOf(type['types']).flatMap((each) => alternativesOf(each, place, depth));
  if (/^TS(TypeLiteral|IntersectionType)$/.test(type.type)) return ['{}'];
  if (type.type !== 'TSTypeReference') return [sourceOf(place, type)];
  const found = findDeclaration(place, nameOf(type['typeName']) ?? '');
  if (found === undefined || depth >= depthMax) return [sourceOf(place, type)];
  const alias = found.node['typeAnnotation'];
  return found.node.type === 'TSTypeAliasDeclaration' && isNode(alias)
    ? alternativesOf(alias, found.place, depth + 1)
    : ['{}'];
}

function typeMembers(type: unknown, place: Place, depth: number): Names {
  if (!isNode(type) || depth > depthMax) return {};
  if (type.type === 'TSUnionType' || type.type === 'TSIntersectionType')
    return Object.assign(
      {},
      ...nodesOf(type['types']).map((each) => typeMembers(each, place, depth)),
    ) as Names;
  if (type.type === 'TSTypeLiteral')
    return Object.assign(
      {},
      ...nodesOf(type['members']).map((member) => memberNames(member, place, depth)),
    ) as Names;
  if (type.type !== 'TSTypeReference') return {};
  const [first, second] = nodesOf((type['typeArguments'] as SyntaxNode | null)?.['params']);
  const name = nameOf(type['typeName']) ?? '';
  if (name === 'Pick' || name === 'Omit') {
    const written = nodesOf(second?.type === 'TSUnionType' ? second['types'] : [second]);
    const chosen = new Set(written.map(textOf));
    const isChosen = (member: string) => chosen.has(member.split('.')[0]) === (name === 'Pick');
    return Object.fromEntries(
      Object.entries(typeMembers(first, place, depth)).filter(([member]) => isChosen(member)),
    );
  }
  if (name === 'Readonly') return typeMembers(first, place, depth);
  const found = findDeclaration(place, name);
  return found ? membersOf(found, depth) : {};
}
