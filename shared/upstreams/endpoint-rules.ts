/** Decides which addresses a channel may call: public https, so that no row leads into our own network. */
import { ipv4Number, isLoopbackAddress, isPublicAddress } from './channel-type.ts';

export interface EndpointRules {
  /** true on the local stack: http and https on loopback are allowed too. */
  local: boolean;
  /** The relay's public host, with its port unless that is the usual one. */
  ownHost?: string | undefined;
}

/**
 * Why this endpoint is refused, as the end of `endpoint: ...`; undefined if it is allowed.
 * @param paths paths that are appended to the base address, so it must not contain them
 */
export function endpointProblem(
  endpoint: string,
  rules: EndpointRules,
  paths: readonly string[] = [],
): string | undefined {
  // The address is not quoted: it may hold a password or a key.
  const url = URL.parse(endpoint);
  if (url === null) return 'found no address, wanted one such as https://api.example.com/v1';
  if (url.username !== '' || url.password !== '') {
    return 'found a user name or password in the address, wanted it without (credentials go into `secret`)';
  }
  if (endpoint.includes('?') || endpoint.includes('#')) {
    return 'found a ? or # in the address, wanted the base address alone';
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `found ${url.protocol}//, wanted https://`;
  }
  const path = paths.find((each) => url.pathname.replace(/\/+$/, '').endsWith(each));
  if (path !== undefined) return `found ${path} at the end, wanted the base address (it mostly ends in /v1)`;
  if (isOwnHost(url, rules)) return 'found the address of this relay itself, wanted an upstream';
  return hostProblem(url, rules);
}

/** On the local stack every name of this machine leads to the relay's port. */
function isOwnHost(url: URL, { local, ownHost = '' }: EndpointRules): boolean {
  const own = URL.parse(`${url.protocol}//${ownHost}`);
  if (own === null || own.port !== url.port) return false;
  return own.hostname === url.hostname.replace(/\.+$/, '') || (local && isHere(own) && isHere(url));
}

/** The endpoint without slashes at its end, as requests need it. */
export const normaliseEndpoint = (endpoint: string): string => endpoint.replace(/\/+$/, '');

/** Why a host is refused: it is no public one. */
export function hostProblem(url: URL, rules: EndpointRules): string | undefined {
  const host = url.hostname.replace(/\.+$/, '').toLowerCase();
  const address = host.replace(/^\[|\]$/g, '');
  if (isLoopbackName(host) || isLoopbackAddress(address)) {
    return rules.local ? undefined : `found ${host}, which is this machine itself, wanted a public host`;
  }
  if (url.protocol === 'http:') return 'found http://, wanted https://';
  if (host.startsWith('[') || ipv4Number(host) !== undefined) {
    return isPublicAddress(address) ? undefined : `found ${host}, which is not a public address`;
  }
  return isPublicName(host) ? undefined : `found ${host}, which is a name inside a private network`;
}

const isHere = ({ hostname }: URL): boolean =>
  isLoopbackName(hostname) || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ''));

const isLoopbackName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

function isPublicName(host: string): boolean {
  return (
    host.includes('.') &&
    !/\.(local|localdomain|internal|lan|home|corp|intranet|private|home\.arpa)$/.test(host)
  );
}
