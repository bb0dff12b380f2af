import type { VendorStack } from './vendor-stack.ts';

/** What a vendor refused or merely tolerated of the relay's requests, from a request on. */
export const objections = ({ vendors }: VendorStack, vendor: string, from: number): object[] =>
  vendors
    .requests(vendor)
    .slice(from)
    .filter(({ status, notes, rule }) => status >= 400 || notes.length > 0 || rule !== undefined)
    .map(({ path, status, rule, notes }) => ({ path, status, rule, notes }));
