import type { Mutants } from './mutant.ts';

export const stack: Mutants = {};
