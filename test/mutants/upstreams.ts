import type { Mutants } from './mutant.ts';

export const upstreams: Mutants = {};
