/** Which pages of customers the settings allow, for what customers are sent. */
import type { OperatorPorts } from '../operator-ports.ts';

export interface CustomerPages {
  /** `/`: models and prices. */
  models: boolean;
  /** `/account` */
  account: boolean;
}

export async function customerPages({ tables }: Pick<OperatorPorts, 'tables'>): Promise<CustomerPages> {
  const [page, account] = await Promise.all([
    tables.get('settings', 'page'),
    tables.get('settings', 'account_page'),
  ]);
  return { models: !isOff(page?.['value']), account: !isOff(account?.['value']) };
}

/** As a table's row says it: text is accepted for a switch. */
const isOff = (value: unknown): boolean => value === false || value === 'false';
