/**
 * Which addresses may be connected to, checked when a name is resolved: what the configuration check says of a name is not
 * enough, as a name may resolve to another address later.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isLoopbackAddress, isPublicAddress } from '../../upstreams/public-address.ts';

export interface AddressRules {
  /** true on the local stack: this machine itself may be called. */
  local: boolean;
}

/** May the relay connect to this address? */
export const isAllowedAddress = (address: string, { local }: AddressRules): boolean =>
  isPublicAddress(address) || (local && isLoopbackAddress(address));

/** All addresses of a name. The error names none of them. */
export type Resolve = (
  name: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A lookup for sockets that fails with `EPRIVATE` when any address of a name may not be connected to: one private address
 * among public ones is an attack, not a mistake.
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
