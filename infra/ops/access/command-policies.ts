/**
 * The policies with which each command runs; one of them is enough. A command that is not here fails the test; one that
 * asks nothing of AWS has none.
 */
import type { PolicyName } from './policy-access.ts';

const reading: readonly PolicyName[] = ['support', 'operator'];
const auditing: readonly PolicyName[] = ['support', 'operator', 'repair'];
const operating: readonly PolicyName[] = ['operator'];
const repairing: readonly PolicyName[] = ['repair'];

/**
 * By the command's words; with an option where that needs more than the command without it. The first policy is the one
 * that allows least, which an error names.
 */
export const commandPolicies: Readonly<Record<string, readonly PolicyName[]>> = {
  init: operating,
  'key create': operating,
  'key list': reading,
  'key check': reading,
  'key disable': operating,
  'key rotate': operating,
  'channel add': operating,
  'channel list': reading,
  'channel test': operating,
  'channel probe': operating,
  'channel sync': operating,
  'charge list': reading,
  'charge explain': reading,
  'charge import': operating,
  'account show': reading,
  'account responses': operating,
  'account grant': operating,
  'account refund': operating,
  'account plan': operating,
  'response show': operating,
  'response delete': operating,
  'payment link': operating,
  'payment list': reading,
  'payment assign': operating,
  'payment reject': operating,
  'ledger list': auditing,
  'ledger total': auditing,
  request: auditing,
  audit: auditing,
  'audit --repair': repairing,
  'audit --rebuild-daily': repairing,
  check: reading,
  'config show': reading,
  'config diff': reading,
  'config export': reading,
  'config apply': operating,
  'config rollback': operating,
  'secret put': operating,
  doctor: reading,
  // Computes; asks AWS for nothing.
  cost: [],
};
