/** Decides which addresses a channel may call: only public https, so that no row leads into our own network. */

export interface EndpointRules {
  /** true on the local stack: http and https on loopback are allowed too. */
  local: boolean;
  /** The relay's public host, with its port unless that is the usual one. */
  ownHost?: string | undefined;
}

/**
 * Returns the reason, to follow `endpoint: `, or undefined if the address is allowed.
 * @param paths paths that are appended to the base address, so it must not contain them
 */
export function findEndpointProblem(
  endpoint: string,
  rules: EndpointRules,
  paths: readonly string[] = [],
): string | undefined {
  // The address is not quoted: it may hold a password or a key.
  const url = URL.parse(endpoint);
  if (url === null) return 'found no address, expected one such as https://api.example.com/v1';
  if (url.username !== '' || url.password !== '') {
    return 'found a user name or password in the address, expected it without (credentials go into `secret`)';
  }
  if (endpoint.includes('?') || endpoint.includes('#')) {
    return 'found a ? or # in the address, expected the base address alone';
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `found ${url.protocol}//, expected https://`;
  }
  const path = paths.find((each) => url.pathname.replace(/\/+$/, '').endsWith(each));
  if (path !== undefined)
    return `found ${path} at the end, expected the base address (it mostly ends in /v1)`;
  if (isOwnHost(url, rules)) return 'found the address of this relay itself, expected an upstream';
  return findHostProblem(url, rules);
}

/** On the local stack every name of this machine leads to the relay's port. */
function isOwnHost(url: URL, { local, ownHost = '' }: EndpointRules): boolean {
  const own = URL.parse(`${url.protocol}//${ownHost}`);
  if (own === null || own.port !== url.port) return false;
  return (
    own.hostname === url.hostname.replace(/\.+$/, '') || (local && isThisMachine(own) && isThisMachine(url))
  );
}

/** With its port, unless that is the usual one. */
export const hostOf = (endpoint: string): string | undefined => URL.parse(endpoint)?.host;

export const normaliseEndpoint = (endpoint: string): string => endpoint.replace(/\/+$/, '');

export function findHostProblem(url: URL, rules: EndpointRules): string | undefined {
  const host = url.hostname.replace(/\.+$/, '').toLowerCase();
  const address = host.replace(/^\[|\]$/g, '');
  if (isLoopbackName(host) || isLoopbackAddress(address)) {
    return rules.local ? undefined : `found ${host}, which is this machine itself, expected a public host`;
  }
  if (url.protocol === 'http:') return 'found http://, expected https://';
  if (host.startsWith('[') || parseIpv4(host) !== undefined) {
    return isPublicAddress(address) ? undefined : `found ${host}, which is not a public address`;
  }
  return isPublicName(host) ? undefined : `found ${host}, which is a name inside a private network`;
}

const isThisMachine = ({ hostname }: URL): boolean =>
  isLoopbackName(hostname) || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ''));

const isLoopbackName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

function isPublicName(host: string): boolean {
  return (
    host.includes('.') &&
    !/\.(local|localdomain|internal|lan|home|corp|intranet|private|home\.arpa)$/.test(host)
  );
}

// Public IP addresses. Checked in rows, and at connect time for resolved host names.

/**
 * IPv4 networks without public hosts. Source: IANA's registry of special-purpose addresses, and multicast.
 */
const reservedNetworks: [network: number, bits: number][] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8',
  '169.254.0.0/16', // link-local, includes the metadata services
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
].map((text) => {
  const [network = '', bits] = text.split('/');
  return [parseIpv4(network) ?? 0, Number(bits)];
});

/** Takes an address as a resolver gives it, IPv6 without brackets. An unreadable address is not public. */
export function isPublicAddress(address: string): boolean {
  const ipv4 = parseIpv4(address);
  if (ipv4 === undefined) return isPublicIpv6(address);
  return !reservedNetworks.some(([network, bits]) => ipv4 >>> (32 - bits) === network >>> (32 - bits));
}

export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || (parseIpv4(address) !== undefined && address.startsWith('127.'));

/** Reads only four decimals, because URL converts every other spelling (hex, octal, one number) to them. */
function parseIpv4(address: string): number | undefined {
  const numbers = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1).map(Number);
  if (!numbers || numbers.some((part) => part > 255)) return undefined;
  return numbers.reduce((number, part) => number * 256 + part, 0);
}

/**
 * Only 2000::/3 is globally routed. Within it, 6to4 and 2001::/23 (Teredo and others) are refused because they
 * contain or represent other addresses, and two networks because they are for documentation. Mapped IPv4, NAT64
 * and zones are outside 2000::/3.
 */
function isPublicIpv6(address: string): boolean {
  if (!/^[0-9a-f:]+$/i.test(address)) return false;
  const [first = '', second = ''] = address.split(':');
  const group = Number.parseInt(first, 16);
  const next = Number.parseInt(second || '0', 16);
  if (!(group >= 0x2000 && group <= 0x3fff) || group === 0x2002) return false;
  if (group === 0x2001) return next >= 0x0200 && next !== 0x0db8;
  return !(group === 0x3fff && next < 0x1000);
}
