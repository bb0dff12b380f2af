/** The syntax tree of a source as a flat list, for rules about what code does and not how it is written. */
import { parseAst } from 'vitest/node';

export interface SyntaxNode {
  type: string;
  [member: string]: unknown;
}

/** A node, the node above it, and as which member it stands there: `callee`, `left`. */
export interface Place {
  node: SyntaxNode;
  parent: SyntaxNode;
  role: string;
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';

export function placesIn(root: SyntaxNode): Place[] {
  const places: Place[] = [];
  const visit = (parent: SyntaxNode): void => {
    for (const role in parent) {
      const member = parent[role];
      for (const node of Array.isArray(member) ? member : [member])
        if (isNode(node)) {
          places.push({ node, parent, role });
          visit(node);
        }
    }
  };
  visit(root);
  return places;
}

export const placesOf = (text: string): Place[] =>
  placesIn(parseAst(text, { lang: 'ts' }) as unknown as SyntaxNode);

/** The name of an identifier, a private one too. */
export const nameOf = (node: unknown): string | undefined =>
  isNode(node) && /^(Private)?Identifier$/.test(node.type) ? String(node['name']) : undefined;

/** The value of a text without expressions in it, in any quotes. */
export function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value'];
  if (node.type === 'TSLiteralType') return textOf(node['literal']);
  const parts = node.type === 'TemplateLiteral' ? (node['quasis'] as { value: { cooked: string } }[]) : [];
  return parts.length === 1 ? parts[0]?.value.cooked : undefined;
}

/** `b` of `a.b` and of `a['b']`. */
export const propertyOf = (node: SyntaxNode): string | undefined =>
  node['computed'] === true ? textOf(node['property']) : nameOf(node['property']);

/** The last name of what is read: `row` of `this.row.region` and of `const { region } = this.row`. */
export const lastName = (node: unknown): string =>
  isNode(node) && node.type === 'MemberExpression' ? (propertyOf(node) ?? '') : (nameOf(node) ?? '');

/** Whether an identifier is the name of a member, as `b` in `a.b` and `{ b: 1 }`, and no variable. */
export const isMemberName = ({ parent, role }: Place): boolean =>
  (role === 'property' || role === 'key') && parent['computed'] !== true;

const typePlaces = new Set([
  'TSTypeReference',
  'TSTypeQuery',
  'TSQualifiedName',
  'TSInterfaceHeritage',
  'TSClassImplements',
]);

/** Identifiers that stand for a value: a variable or a global. */
export const variablesOf = (places: Place[]): Place[] =>
  places.filter(
    (place) => place.node.type === 'Identifier' && !isMemberName(place) && !typePlaces.has(place.parent.type),
  );

const importing = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]);

/** `require` itself, or `createRequire(...)`; `import.meta` resolves as well. */
const isRequire = (node: SyntaxNode): boolean =>
  nameOf(node) === 'require' || nameOf(node['callee']) === 'createRequire';

/** `require('a')`, `require.resolve('a')` and `import.meta.resolve('a')`. */
function requiredBy({ type, callee, arguments: given }: SyntaxNode): string | undefined {
  if (type !== 'CallExpression' || !isNode(callee)) return undefined;
  const object = callee['object'] as SyntaxNode;
  const isResolve =
    callee.type === 'MemberExpression' &&
    propertyOf(callee) === 'resolve' &&
    (isRequire(object) || object.type === 'MetaProperty');
  return isRequire(callee) || isResolve ? textOf((given as unknown[])[0]) : undefined;
}

/** Every module that is named, as it is written, in any of the ways to do that. */
export const importsIn = (places: Place[]): string[] =>
  places.flatMap(({ node }) => {
    if (node.type === 'TSExternalModuleReference') return textOf(node['expression']) ?? [];
    return (importing.has(node.type) ? textOf(node['source']) : requiredBy(node)) ?? [];
  });
