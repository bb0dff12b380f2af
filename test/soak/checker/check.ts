/** Runs all checks on a soak. No findings: nothing was lost, doubled or answered wrong. */
import { answerFindings } from './answers.ts';
import { balanceFindings, holdFindings } from './balances.ts';
import { causeFindings } from './causes.ts';
import { ledgerFindings } from './ledger.ts';
import { Circumstances, overlaps, type Finding, type Observations } from './observations.ts';
import { priceFindings } from './prices.ts';

const lossKinds = new Set([
  'store-throttled',
  'store-down',
  'store-reply-lost',
  'store-slow',
  'freeze',
  'clock-skew',
]);
/** A settlement is retried until the deadline of its request. */
const triedMs = 75_000;

export function check(seen: Observations): Finding[] {
  const circumstances = new Circumstances(seen);
  return [
    ...answerFindings(seen, circumstances),
    ...causeFindings(seen, circumstances),
    ...ledgerFindings(seen, circumstances),
    ...priceFindings(seen),
    ...holdFindings(seen),
    ...balanceFindings(seen),
    ...deathFindings(seen),
    ...lossFindings(seen),
  ];
}

function deathFindings({ deaths }: Observations): Finding[] {
  return deaths
    .filter(({ planned }) => !planned)
    .map(({ target, pid }) => ({
      rule: 'death',
      what: `a process of ${target} (pid ${pid}) died by itself`,
    }));
}

/** The relay may leave a close to the audit only if the store or the death of its process prevented the write. */
function lossFindings({ losses, disturbances }: Observations): Finding[] {
  const excuses = disturbances.filter(({ kind }) => lossKinds.has(kind));
  return losses
    .filter(({ atMs }) => !excuses.some((each) => overlaps(each, atMs - triedMs, atMs)))
    .map(({ message, atMs }) => ({
      rule: 'lost',
      what: `${message} at ${new Date(atMs).toISOString()}, and nothing had kept the relay from its store`,
    }));
}

/** Kinds of faults that were injected too rarely to prove anything. */
export function missingFaults({ injected, quota }: Pick<Observations, 'injected' | 'quota'>): string[] {
  return [...injected]
    .filter(([, count]) => count < quota)
    .map(([kind, count]) => `${kind}: ${count} of ${quota}`);
}
