/** Reads what the setting `payments` says about Stripe, from its row as it is now. */
import { readSetting } from '../../config/compile/read-setting.ts';
import type { StripeSettings } from '../../config/settings/settings.ts';
import { Failure, usable } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** Throws a Failure if there is none. */
export async function stripeSetting({ tables, target }: OperatorPorts): Promise<StripeSettings> {
  const raw = await tables.get('settings', 'payments');
  if (!raw)
    throw new Failure('the table settings has no row payments: docs/payments.md shows how to set it up');
  const { row } = usable(readSetting(raw, target), 'the setting payments is not used: ');
  if (!row.payments) throw new Failure('the setting payments names no provider');
  return row.payments.stripe;
}
