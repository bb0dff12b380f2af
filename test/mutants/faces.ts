import type { Mutants } from './mutant.ts';

export const faces: Mutants = {};
