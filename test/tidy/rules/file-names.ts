/** Names of files: parallel in parallel folders, once elsewhere, and an adapter named after its port. */
import path from 'node:path';
import type { ParallelSet } from '../house.ts';
import { isProduct, within, type Source } from '../sources.ts';

const nameOf = (file: string): string => path.posix.basename(file).replace(/\.\w+$/, '');

const membersOf = (sources: Source[], { parent }: ParallelSet): string[] => [
  ...new Set(sources.map(({ folder }) => folder).filter((folder) => path.posix.dirname(folder) === parent)),
];

export const missingParallels = (sources: Source[], sets: ParallelSet[]): string[] =>
  sets.flatMap((set) =>
    membersOf(sources, set).flatMap((member) => {
      const inside = sources.filter(({ folder }) => folder === member);
      const held = new Set(inside.map(({ file }) => nameOf(file)));
      return set.names
        .map((name) => name.replace('*', path.posix.basename(member)))
        .filter((name) => !held.has(name))
        .map((name) => `${member} has no ${name}.ts`);
    }),
  );

export function repeatedNames(sources: Source[], sets: ParallelSet[]): string[] {
  const shared = sources.filter(({ folder }) => within(folder, 'shared'));
  const byName = Map.groupBy(shared, ({ file }) => nameOf(file));
  const areParallel = (folders: string[]): boolean =>
    sets.some(({ parent }) => folders.every((folder) => path.posix.dirname(folder) === parent));
  return [...byName.values()]
    .filter((same) => same.length > 1 && !areParallel(same.map(({ folder }) => folder)))
    .map((same) => same.map(({ file }) => file).join(' and '));
}

/** A port `quota-store` has an adapter `dynamo-quota-store`, which imports it. */
export function portsWithoutAdapter(sources: Source[], notPorts: Record<string, string>): string[] {
  const adapters = sources.filter(({ folder }) => within(folder, 'shared/adapters'));
  const isAnswered = (port: Source): boolean =>
    adapters.some(
      ({ file, uses }) => nameOf(file).endsWith(`-${nameOf(port.file)}`) && uses.includes(port.file),
    );
  const ports = sources.filter(
    ({ folder }) => within(folder, 'shared/relay/ports') || folder === 'shared/operate',
  );
  return [
    ...ports
      .filter((port) => !notPorts[port.file] && !isAnswered(port))
      .map(({ file }) => `${file} has no adapter <technology>-${nameOf(file)} that imports it`),
    ...Object.keys(notPorts)
      .filter((each) => !ports.some((port) => port.file === each && !isAnswered(port)))
      .map((each) => `${each} needs no leave to have no adapter`),
  ];
}

export const drawers = (sources: Source[]): string[] =>
  sources
    .filter(isProduct)
    .filter(({ file }) => /^(index|utils?|helpers?|common|misc)$/.test(nameOf(file)))
    .map(({ file }) => file);
