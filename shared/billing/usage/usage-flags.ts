/**
 * Why a charged count is not the upstream's own. `absent`: it reported none. `partial`: the answer broke off before the
 * count, or after a count of less than was streamed. `impossible`: below zero or beyond all models. `low`: less than the
 * text has. `high`: more than request and model allow, and than the estimate. `cache`: the cache counts do not fit the
 * input, so none is used.
 */
export type UsageFault = 'absent' | 'partial' | 'impossible' | 'low' | 'high' | 'cache';
export type UsageFlag = `${'input' | 'output'}:${UsageFault}`;

/** As the log line and the ledger row have them: `input:low output:absent`. Undefined: none. */
export const flagText = (flags: readonly UsageFlag[]): string | undefined => flags.join(' ') || undefined;

/**
 * Whether an operator should look at the channel. An answer that broke off has no whole count, and a channel whose row
 * says that it reports none is known. `isExpected`: the upstream was asked for its counts.
 */
export const isImplausible = (flags: readonly UsageFlag[], isExpected: boolean): boolean =>
  flags.some((flag) => !flag.endsWith(':partial') && (isExpected || !flag.endsWith(':absent')));
