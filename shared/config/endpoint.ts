/** Which addresses a channel may call: public https, so that a row can never point the relay at its own network. */

export interface EndpointRules {
  /** true on the local stack: http and https on loopback are allowed too. */
  local: boolean;
}

const suffix = '/chat/completions';

/** Why this endpoint is refused, as the end of `endpoint: ...`; undefined when it is fine. */
export function endpointProblem(endpoint: string, rules: EndpointRules): string | undefined {
  // The address itself is not quoted: what is wrong with it may be a password or a key in it.
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
  if (url.pathname.replace(/\/+$/, '').endsWith(suffix)) {
    return `found ${suffix} at the end, wanted the base address (it mostly ends in /v1)`;
  }
  return hostProblem(url, rules);
}

/** The address as requests are built from it: without slashes at the end. */
export const normaliseEndpoint = (endpoint: string): string => endpoint.replace(/\/+$/, '');

function hostProblem(url: URL, rules: EndpointRules): string | undefined {
  const host = url.hostname.replace(/\.$/, '').toLowerCase();
  if (isLoopback(host)) {
    return rules.local ? undefined : `found ${host}, which is this machine itself, wanted a public host`;
  }
  if (url.protocol === 'http:') return 'found http://, wanted https://';
  if (host.startsWith('[')) {
    return isPublicIpv6(host) ? undefined : `found ${host}, which is not a public address`;
  }
  const bytes = ipv4Bytes(host);
  if (bytes) return isPublicIpv4(bytes) ? undefined : `found ${host}, which is not a public address`;
  return isPublicName(host) ? undefined : `found ${host}, which is a name inside a private network`;
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127\.[\d.]+$/.test(host)
  );
}

/** URL has already turned every spelling of an IPv4 address (hex, octal, one number) into four decimals. */
function ipv4Bytes(host: string): [number, number] | undefined {
  const match = /^(\d+)\.(\d+)\.\d+\.\d+$/.exec(host);
  return match ? [Number(match[1]), Number(match[2])] : undefined;
}

function isPublicIpv4([first, second]: [number, number]): boolean {
  if (first === 0 || first === 10 || first === 127 || first >= 224) return false;
  if (first === 100) return second < 64 || second > 127; // carrier-grade NAT
  if (first === 169) return second !== 254; // link-local, which holds the metadata service
  if (first === 172) return second < 16 || second > 31;
  if (first === 192) return second !== 168 && second !== 0;
  if (first === 198) return second !== 18 && second !== 19;
  return true;
}

/** 2000::/3 is all that is routed; in it, 6to4, Teredo and documentation carry or stand for other addresses. */
function isPublicIpv6(host: string): boolean {
  const [first = '', second = ''] = host.slice(1, -1).split(':');
  const group = Number.parseInt(first, 16);
  if (!(group >= 0x2000 && group <= 0x3fff) || group === 0x2002) return false;
  const next = Number.parseInt(second || '0', 16);
  return !(group === 0x2001 && (next === 0 || next === 0x0db8));
}

function isPublicName(host: string): boolean {
  return host.includes('.') && !/\.(local|internal|lan|home|corp|intranet|private|home\.arpa)$/.test(host);
}
