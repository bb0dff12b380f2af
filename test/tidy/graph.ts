/** Graphs of names: which name leads to which. */
export type Graph = Map<string, Set<string>>;

export function graphOf(arrows: Iterable<readonly [string, string]>, nodes: Iterable<string> = []): Graph {
  const graph: Graph = new Map();
  const targetsOf = (name: string): Set<string> => {
    const targets = graph.get(name) ?? new Set();
    graph.set(name, targets);
    return targets;
  };
  for (const node of nodes) targetsOf(node);
  for (const [from, to] of arrows) {
    targetsOf(from).add(to);
    targetsOf(to);
  }
  return graph;
}

/** The groups of names that reach each other, by Tarjan's algorithm; every name is in one, mostly alone, targets first. */
function groupsOf(graph: Graph): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const groups: string[][] = [];
  const visit = (name: string): void => {
    index.set(name, index.size);
    low.set(name, Number(index.get(name)));
    stack.push(name);
    for (const target of graph.get(name) ?? []) {
      if (!index.has(target)) visit(target);
      if (stack.includes(target)) low.set(name, Math.min(Number(low.get(name)), Number(low.get(target))));
    }
    if (low.get(name) === index.get(name)) groups.push(stack.splice(stack.indexOf(name)));
  };
  for (const name of graph.keys()) if (!index.has(name)) visit(name);
  return groups;
}

/** Groups of two and more names that reach each other, sorted. */
export const circlesOf = (graph: Graph): string[][] =>
  groupsOf(graph)
    .filter((group) => group.length > 1)
    .map((group) => group.toSorted());
