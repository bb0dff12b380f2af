import type { Mutants } from './mutant.ts';

export const calls: Mutants = {};
