/** An amount of a service, before it has a price. */
import type { PriceName } from './aws-prices.ts';

/** An amount of one service, in the unit of its price. */
export interface Taken {
  price: PriceName;
  what: string;
  quantity: number;
}

/** AWS's gigabyte. */
export const gigabyte = 1024 ** 3;
