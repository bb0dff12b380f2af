/**
 * The policy that each command needs, the smallest that has it. A command that is not here fails the test; one that
 * asks nothing of AWS has `none`.
 */
import type { PolicyName } from './policy-access.ts';

/** By the command's words; with an option where that needs more than the command without it. */
export const commandPolicies: Readonly<Record<string, PolicyName | 'none'>> = {
  init: 'operator',
  'key create': 'operator',
  'key list': 'support',
  'key check': 'support',
  'key disable': 'operator',
  'key rotate': 'operator',
  'channel add': 'operator',
  'channel list': 'support',
  'channel test': 'operator',
  'channel probe': 'operator',
  'channel sync': 'operator',
  'charge list': 'support',
  'charge explain': 'support',
  'charge import': 'operator',
  'account show': 'support',
  'account grant': 'operator',
  'account refund': 'operator',
  'account plan': 'operator',
  'payment link': 'operator',
  'payment list': 'support',
  'payment assign': 'operator',
  'payment reject': 'operator',
  'ledger list': 'support',
  'ledger total': 'support',
  request: 'support',
  audit: 'support',
  'audit --repair': 'repair',
  'audit --rebuild-daily': 'repair',
  check: 'support',
  'config show': 'support',
  'config diff': 'support',
  'config export': 'support',
  'config apply': 'operator',
  'config rollback': 'operator',
  'secret put': 'operator',
  doctor: 'support',
};

/** The policies with which a command runs: the one that it needs, and each that includes that. */
export function policiesFor(command: string): PolicyName[] {
  const needed = commandPolicies[command];
  if (needed === undefined || needed === 'none') return [];
  const wider: PolicyName[] = needed === 'support' ? ['operator'] : [];
  return [needed, ...wider, ...(command === 'audit' ? (['repair'] as const) : [])];
}
