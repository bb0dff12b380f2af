/** No state of the whole module: two requests of one environment would share it. */
import { isProduct, type Source } from '../sources.ts';
import { isNode, nameOf, propertyOf, type Place, type SyntaxNode } from '../syntax.ts';

const writers =
  /^(set|add|push|delete|clear|splice|unshift|pop|shift|sort|reverse|fill|assign|defineProperty|copyWithin)$/;

/** The variable that `a.b.c` and `a[0]` begin with. */
const ownerOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === 'MemberExpression' ? ownerOf(node['object']) : nameOf(node);

/** The variable whose content a node changes: `a.b = 1`, `a.push(1)`, `delete a.b`, `Object.assign(a, b)`, `keepNewest(a, ...)`. */
function changedBy({
  type,
  callee,
  arguments: given,
  left,
  argument,
  operator,
}: SyntaxNode): string | undefined {
  const target =
    type === 'AssignmentExpression'
      ? left
      : type === 'UpdateExpression' || (type === 'UnaryExpression' && operator === 'delete')
        ? argument
        : undefined;
  if (target !== undefined) return ownerOf(target);
  if (type === 'CallExpression' && nameOf(callee) === 'keepNewest') return ownerOf((given as unknown[])[0]);
  if (type !== 'CallExpression' || !isNode(callee) || callee.type !== 'MemberExpression') return undefined;
  if (!writers.test(propertyOf(callee) ?? '')) return undefined;
  return nameOf(callee['object']) === 'Object' ? ownerOf((given as unknown[])[0]) : ownerOf(callee['object']);
}

const isTopLevel = ({ parent, role }: Place): boolean =>
  role === 'body' ? parent.type === 'Program' : parent.type === 'ExportNamedDeclaration';

const containers = /^(Array|Object|New)Expression$/;

function stateOf({ places }: Source): string[] {
  const declarations = places.filter(
    (place) => place.node.type === 'VariableDeclaration' && isTopLevel(place),
  );
  const [constants, variables] = [
    declarations.filter(({ node }) => node['kind'] === 'const'),
    declarations.filter(({ node }) => node['kind'] !== 'const'),
  ].map((some) => some.flatMap(({ node }) => node['declarations'] as SyntaxNode[]));
  const changed = new Set(places.map(({ node }) => changedBy(node)));
  const kept = (constants ?? []).filter(
    ({ id, init }) => isNode(init) && containers.test(init.type) && changed.has(nameOf(id)),
  );
  const ofClasses = places
    .filter(({ node }) => node.type === 'PropertyDefinition' && node['static'] && !node['readonly'])
    .map(({ node }) => `static ${nameOf(node['key']) ?? ''}`);
  return [...[...(variables ?? []), ...kept].map(({ id }) => nameOf(id) ?? 'a pattern'), ...ofClasses];
}

export function moduleState(sources: Source[], leave: Record<string, string>): string[] {
  const found = sources.filter(isProduct).map((source) => ({ file: source.file, names: stateOf(source) }));
  return [
    ...found
      .filter(({ file }) => !(file in leave))
      .flatMap(({ file, names }) => names.map((name) => `${file} keeps ${name} for the whole module`)),
    ...Object.keys(leave)
      .filter((each) => !found.some(({ file, names }) => file === each && names.length > 0))
      .map((each) => `${each} needs no leave to keep state`),
  ];
}
