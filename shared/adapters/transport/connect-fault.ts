/** Names the cause of a failed connection by its stage and the system's code; must never read a message. */
import type { ConnectFault } from '../../upstreams/exchange.ts';

/** Before TCP is connected. The codes of Node's resolver, of sockets, and of our own lookup. */
const connectFaults: Record<string, ConnectFault> = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  EAI_NODATA: 'dns',
  ENODATA: 'dns',
  ESERVFAIL: 'dns',
  EPRIVATE: 'address',
};

/** OpenSSL's words for a chain that ends at nobody who is trusted. */
const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_UNTRUSTED|CERT_REVOKED|INVALID_CA)/;

/** `handshaking`: TCP was connected. Undefined: a cause without a name of its own. */
export function connectFault(
  code: string,
  { handshaking }: { handshaking: boolean },
): ConnectFault | undefined {
  if (!handshaking) return Object.hasOwn(connectFaults, code) ? connectFaults[code] : undefined;
  if (code === 'CERT_HAS_EXPIRED') return 'tls_expired';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'tls_host';
  return untrusted.test(code) ? 'tls_untrusted' : 'tls';
}
