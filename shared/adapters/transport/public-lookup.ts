/**
 * Checks addresses when a name is resolved. The configuration check alone is not enough, because a name may
 * later resolve to another address.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isLoopbackAddress, isPublicAddress } from '../../upstreams/public-address.ts';

export interface AddressRules {
  /** true on the local stack: connections to this machine are allowed. */
  local: boolean;
}

/** Whether the relay may connect to this address. */
export const isAllowedAddress = (address: string, { local }: AddressRules): boolean =>
  isPublicAddress(address) || (local && isLoopbackAddress(address));

/** Resolves a name to all its addresses. The error contains none of them. */
export type Resolve = (
  name: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A lookup for sockets. Fails with `EPRIVATE` when any address of the name is not allowed: a private address
 * among public ones indicates an attack.
 */
export function publicLookup(rules: AddressRules, resolve: Resolve = systemLookup): LookupFunction {
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, addresses) => {
      const refused = error ?? refusalOf(addresses, rules);
      const [first] = refused ? [] : addresses;
      if (refused || !first) return done(refused ?? failure('ENOTFOUND'), []);
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

const refusalOf = (addresses: LookupAddress[], rules: AddressRules): NodeJS.ErrnoException | undefined =>
  addresses.every(({ address }) => isAllowedAddress(address, rules)) ? undefined : failure('EPRIVATE');

const failure = (code: string): NodeJS.ErrnoException =>
  Object.assign(new Error('The name leads to no address that may be called.'), { code });
