/** HTTP requests to upstreams. */
import type { UpstreamReply, UpstreamRequest } from '../../upstreams/exchange.ts';

export interface UpstreamTransport {
  /** Sends the request and resolves with the reply's head. Rejects with TransportError. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply>;
}
