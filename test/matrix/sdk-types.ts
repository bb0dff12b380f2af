/**
 * The types that the vendors' clients declare, as data: the fields of each object, the variants of each union. A newer
 * version of a client shows here as another list of fields.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAst } from 'vitest/node';
import { isNode, nameOf, type SyntaxNode } from '../tidy/syntax.ts';

export type Shape =
  | { kind: 'text' | 'number' | 'flag' | 'map' | 'null' }
  | { kind: 'literal'; value: string | number | boolean }
  | { kind: 'list'; item: Shape }
  | { kind: 'union'; options: Shape[] }
  | ObjectShape;

export interface ObjectShape {
  kind: 'object';
  /** The declared name, or the position of a type without one. */
  name: string;
  fields: ReadonlyMap<string, { shape: Shape; isOptional: boolean }>;
  /** Also allows members with any name. */
  isOpen: boolean;
}

interface SourceFile {
  /** By qualified name, such as `ChatCompletion.Choice`. */
  declared: Map<string, SyntaxNode>;
  /** The file and the name in it, which is empty for a whole module. */
  imported: Map<string, { file: string; name: string }>;
}

const modules = path.join(import.meta.dirname, '../../node_modules');
const nodes = (value: unknown): SyntaxNode[] => (Array.isArray(value) ? value.filter(isNode) : []);
const inner = (node: SyntaxNode, ...members: string[]): unknown =>
  members.reduce<unknown>((each, member) => (isNode(each) ? each[member] : undefined), node);

/** Reads each file of types once. */
export class SdkTypes {
  readonly #files = new Map<string, SourceFile>();
  readonly #objects = new Map<SyntaxNode, ObjectShape>();

  /** @param file path in node_modules, without `.d.ts` */
  shapeOf(file: string, name: string): ObjectShape {
    const shape = this.#named(path.join(modules, `${file}.d.ts`), name, '');
    if (shape?.kind !== 'object') throw new Error(`${file} declares no object ${name}`);
    return shape;
  }

  unionOf(file: string, name: string): Shape {
    const shape = this.#named(path.join(modules, `${file}.d.ts`), name, '');
    if (!shape) throw new Error(`${file} declares no ${name}`);
    return shape;
  }

  #file(file: string): SourceFile {
    const known = this.#files.get(file);
    if (known) return known;
    const read: SourceFile = { declared: new Map(), imported: new Map() };
    const root = parseAst(readFileSync(file, 'utf8'), { lang: 'ts' }) as unknown as SyntaxNode;
    for (const node of nodes(root['body'])) addImports(node, path.dirname(file), read);
    addDeclared(nodes(root['body']), '', read);
    this.#files.set(file, read);
    return read;
  }

  /** @param scope the namespaces around the reference, such as `ChatCompletion.` */
  #named(file: string, name: string, scope: string): Shape | undefined {
    const { declared, imported } = this.#file(file);
    for (let around = scope; ; around = around.replace(/[^.]*\.$/, '')) {
      const node = declared.get(around + name);
      if (node) return this.#declared(node, { file, scope: `${around}${name}.` });
      if (around === '') break;
    }
    const [first = '', ...others] = name.split('.');
    const from = imported.get(first);
    return from && this.#named(from.file, [from.name, ...others].filter(Boolean).join('.'), '');
  }

  #declared(node: SyntaxNode, at: { file: string; scope: string }): Shape | undefined {
    if (node.type !== 'TSInterfaceDeclaration') return this.#type(node['typeAnnotation'], at);
    const outer = { ...at, scope: at.scope.replace(/[^.]*\.$/, '') };
    const parents = nodes(node['extends']).map(({ expression }) => this.#reference(expression, outer));
    return this.#object(node, nodes(inner(node, 'body', 'body')), { ...at, parents });
  }

  #object(
    node: SyntaxNode,
    members: SyntaxNode[],
    { parents = [], ...at }: { file: string; scope: string; parents?: (Shape | undefined)[] },
  ): Shape {
    if (members.length > 0 && members.every(({ type }) => type === 'TSIndexSignature'))
      return { kind: 'map' };
    const known = this.#objects.get(node);
    if (known) return known;
    const fields = new Map<string, { shape: Shape; isOptional: boolean }>();
    const isOpen = members.some(({ type }) => type === 'TSIndexSignature');
    const shape: ObjectShape = { kind: 'object', name: at.scope.slice(0, -1), fields, isOpen };
    // Registered before its fields, which may refer to the type itself.
    this.#objects.set(node, shape);
    for (const parent of parents)
      if (parent?.kind === 'object') for (const [name, field] of parent.fields) fields.set(name, field);
    for (const member of members) {
      const name = nameOf(member['key']) ?? inner(member, 'key', 'value');
      if (member.type !== 'TSPropertySignature' || typeof name !== 'string') continue;
      const type = this.#type(inner(member, 'typeAnnotation', 'typeAnnotation'), at);
      if (type) fields.set(name, { shape: type, isOptional: member['optional'] === true });
    }
    return shape;
  }

  #reference(typeName: unknown, at: { file: string; scope: string }): Shape | undefined {
    return this.#named(at.file, qualifiedName(typeName), at.scope);
  }

  #type(node: unknown, at: { file: string; scope: string }): Shape | undefined {
    if (!isNode(node)) return undefined;
    switch (node.type) {
      case 'TSStringKeyword':
        return { kind: 'text' };
      case 'TSNumberKeyword':
        return { kind: 'number' };
      case 'TSBooleanKeyword':
        return { kind: 'flag' };
      case 'TSNullKeyword':
        return { kind: 'null' };
      case 'TSLiteralType': {
        const value = inner(node, 'literal', 'value');
        return ['string', 'number', 'boolean'].includes(typeof value)
          ? { kind: 'literal', value: value as string }
          : undefined;
      }
      case 'TSParenthesizedType':
      case 'TSTypeOperator':
        return this.#type(node['typeAnnotation'], at);
      case 'TSArrayType':
        return { kind: 'list', item: this.#type(node['elementType'], at) ?? { kind: 'map' } };
      case 'TSTypeLiteral':
        return this.#object(node, nodes(node['members']), at);
      case 'TSUnionType': {
        const types = nodes(node['types']).flatMap((each) => this.#type(each, at) ?? []);
        const options = types.flatMap((each) => (each.kind === 'union' ? each.options : [each]));
        return { kind: 'union', options };
      }
      case 'TSIntersectionType':
        return this.#type(nodes(node['types'])[0], at);
      case 'TSTypeReference': {
        const [first] = nodes(inner(node, 'typeArguments', 'params'));
        const name = qualifiedName(node['typeName']);
        if (name === 'Array') return { kind: 'list', item: this.#type(first, at) ?? { kind: 'map' } };
        if (name === 'Omit') return this.#type(first, at);
        return this.#reference(node['typeName'], at) ?? { kind: 'map' };
      }
      default:
        return { kind: 'map' };
    }
  }
}

const qualifiedName = (node: unknown): string => {
  if (!isNode(node)) return '';
  if (node.type === 'TSQualifiedName')
    return `${qualifiedName(node['left'])}.${qualifiedName(node['right'])}`;
  if (node.type === 'MemberExpression')
    return `${qualifiedName(node['object'])}.${qualifiedName(node['property'])}`;
  return nameOf(node) ?? '';
};

function addImports(node: SyntaxNode, folder: string, { imported }: SourceFile): void {
  const from = inner(node, 'source', 'value');
  if (node.type !== 'ImportDeclaration' || typeof from !== 'string' || !from.startsWith('.')) return;
  const file = path.join(folder, from.replace(/\.js$/, '.d.ts'));
  for (const each of nodes(node['specifiers'])) {
    const name = each.type === 'ImportSpecifier' ? (nameOf(each['imported']) ?? '') : '';
    imported.set(nameOf(each['local']) ?? '', { file, name });
  }
}

function addDeclared(body: SyntaxNode[], scope: string, file: SourceFile): void {
  for (const each of body) {
    const node = isNode(each['declaration']) ? each['declaration'] : each;
    const name = scope + (nameOf(node['id']) ?? '');
    if (node.type === 'TSModuleDeclaration')
      addDeclared(nodes(inner(node, 'body', 'body')), `${name}.`, file);
    else if (/^TS(?:Interface|TypeAlias)Declaration$/.test(node.type)) file.declared.set(name, node);
  }
}
