import { accessThreats } from './guards/access-threats.ts';
import { configurationFaults } from './guards/configuration-faults.ts';
import { contentThreats } from './guards/content-threats.ts';
import { moneyFaults } from './guards/money-faults.ts';
import { operationThreats } from './guards/operation-threats.ts';
import { storedGuards } from './guards/stored-guards.ts';
import { upstreamFaults } from './guards/upstream-faults.ts';
import type { Removal } from './removal.ts';

export const removals: readonly Removal[] = [
  ...moneyFaults,
  ...upstreamFaults,
  ...configurationFaults,
  ...accessThreats,
  ...contentThreats,
  ...operationThreats,
  ...storedGuards,
];
