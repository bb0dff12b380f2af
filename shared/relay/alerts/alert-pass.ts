/**
 * The scheduled pass over all accounts and keys: tells dates that come near, and looks at balances whose changes were
 * missed or whose limit was edited. Holds one page at a time.
 */
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { AlertSettings } from '../../config/settings/settings.ts';
import type { AlertAccounts, AlertStore } from '../ports/alerts/alert-store.ts';
import type { Log } from '../ports/telemetry.ts';
import { balanceCause, type BalanceWatch } from './balance-watch.ts';
import { keyCauses, planCauses, type DateCause } from './date-causes.ts';
import { inGroups } from './in-groups.ts';
import { newNotice, type NoticeParts } from './new-notice.ts';

export interface AlertPassPorts extends NoticeParts {
  accounts: Pick<AlertAccounts, 'accounts' | 'keys'>;
  marks: AlertStore;
  watch: Pick<BalanceWatch, 'look'>;
  settings: () => Promise<AlertSettings>;
  log: Log;
}

/** Goes on after a failure and finally rejects with the first one: what was not reported is reported by the next pass. */
export const alertPass = (ports: AlertPassPorts) => async (): Promise<void> => {
  const settings = await ports.settings();
  const failures: unknown[] = [];
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => {
      ports.log.fault(what, error);
      failures.push(error);
    });
  };
  for await (const page of ports.accounts.accounts()) {
    const nowMs = ports.clock.now();
    await attempt('alert_dates', () =>
      tellNew(
        ports,
        page.flatMap((row) => planCauses(row, settings, nowMs)),
      ),
    );
    await attempt('alert_balances', () => lookAt(ports, page));
  }
  for await (const page of ports.accounts.keys()) {
    const nowMs = ports.clock.now();
    await attempt('alert_dates', () =>
      tellNew(
        ports,
        page.flatMap((row) => keyCauses(row, settings, nowMs)),
      ),
    );
  }
  if (failures.length > 0) throw failures[0];
};

async function tellNew({ marks, ...ports }: AlertPassPorts, causes: DateCause[]): Promise<void> {
  if (causes.length === 0) return;
  const reported = await marks.marks(causes.map(({ cause }) => cause));
  const fresh = causes.filter(({ cause }) => !reported.has(cause));
  await inGroups(fresh, async ({ cause, expires, ...about }) => {
    await marks.raise({ cause, seen: undefined, expires, notice: newNotice(ports, about) });
  });
}

/** An account whose limit was removed is looked at while its mark is open: then the cause is gone. */
async function lookAt({ marks, watch }: AlertPassPorts, page: AlertedAccount[]): Promise<void> {
  const seen = await marks.marks(page.map(({ account }) => balanceCause(account)));
  const worthALook = page.filter(
    ({ account, alertBelow }) => alertBelow !== undefined || seen.get(balanceCause(account))?.open,
  );
  await inGroups(worthALook, ({ account }) => watch.look(account));
}
