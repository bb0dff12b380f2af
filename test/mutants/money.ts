import type { Mutants } from './mutant.ts';

export const money: Mutants = {};
