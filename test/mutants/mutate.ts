import path from 'node:path';
import { mutants } from './mutants.ts';

const root = path.join(import.meta.dirname, '../..');

/** Puts the mutant that `RELAY_MUTANT` names in the place of its file, in memory. */
export function mutate(name: string) {
  const mutant = mutants[name];
  if (mutant === undefined) throw new Error(`there is no mutant ${name}`);
  const { file, find, replace } = mutant;
  return {
    name: `mutant: ${name}`,
    enforce: 'pre' as const,
    transform(code: string, id: string): string | undefined {
      if (id !== path.join(root, file)) return undefined;
      if (code.split(find).length !== 2) throw new Error(`${file} does not hold this once: ${find}`);
      return code.replace(find, () => replace);
    },
  };
}
