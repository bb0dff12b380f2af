import type { Mutants } from './mutant.ts';

export const adapters: Mutants = {};
