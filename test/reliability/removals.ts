import { faultRemovals } from './faults.ts';
import type { Removal } from './removal.ts';
import { threatRemovals } from './threats.ts';

export const removals: readonly Removal[] = [...faultRemovals, ...threatRemovals];
