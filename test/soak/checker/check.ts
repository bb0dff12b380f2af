/** All that the checker finds in a soak. Nothing found: nothing was lost, doubled or answered wrong. */
import { answerFindings } from './answers.ts';
import { balanceFindings, holdFindings } from './balances.ts';
import { causeFindings } from './causes.ts';
import { ledgerFindings } from './ledger.ts';
import { Circumstances, type Finding, type Observations } from './observations.ts';
import { priceFindings } from './prices.ts';

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
  ];
}

function deathFindings({ deaths }: Observations): Finding[] {
  return deaths
    .filter(({ planned }) => !planned)
    .map(({ target, pid }) => ({ rule: 'death', what: `a process of ${target} (pid ${pid}) died by itself` }));
}

/** Kinds that were injected too rarely to show anything. */
export function missingFaults({ injected, quota }: Pick<Observations, 'injected' | 'quota'>): string[] {
  return [...injected].filter(([, count]) => count < quota).map(([kind, count]) => `${kind}: ${count} of ${quota}`);
}
