/** All rules, in the order in which services would be asked. */
import { edgeRules } from './edge-rules.ts';
import { iamRules } from './iam-rules.ts';
import { lambdaRules } from './lambda-rules.ts';
import { observeRules } from './observe-rules.ts';
import type { ServiceRule } from './rule.ts';
import { stackRules } from './stack-rules.ts';
import { tableRules } from './table-rules.ts';

export const serviceRules: readonly ServiceRule[] = [
  ...stackRules,
  ...tableRules,
  ...iamRules,
  ...lambdaRules,
  ...edgeRules,
  ...observeRules,
];
