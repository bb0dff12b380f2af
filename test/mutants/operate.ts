import type { Mutants } from './mutant.ts';

export const operate: Mutants = {};
