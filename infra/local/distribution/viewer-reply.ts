/**
 * Emulates how CloudFront sends an answer, including its time-outs: 504 before the first byte, a cut
 * connection later.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { UrlReply } from '../lambda/url-reply.ts';

/** Time limits of CloudFront for an origin. */
export interface OriginTimeouts {
  /** Longest pause before the first byte and between bytes. */
  readTimeoutMs: number;
  /** From the request to the last byte. */
  completionTimeoutMs?: number;
}

const timeoutPage = `<!DOCTYPE html><html><head><title>504 Gateway Timeout</title></head>
<body><h1>504 Gateway Timeout ERROR</h1><p>The request could not be satisfied.</p><p>The function said nothing
for too long.</p></body></html>
`;

/** The answer to the viewer. Drops all writes after the viewer has disconnected or CloudFront timed out. */
export class ViewerReply implements UrlReply {
  readonly #response: ServerResponse;
  readonly #timeouts: OriginTimeouts;
  #silence: NodeJS.Timeout | undefined;
  #completion: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(response: ServerResponse, timeouts: OriginTimeouts) {
    this.#response = response;
    this.#timeouts = timeouts;
    response.on('error', () => {});
    response.once('close', () => this.#finish());
  }

  /** True when the viewer no longer reads. */
  get gone(): boolean {
    return this.#ended || this.#response.destroyed;
  }

  get begun(): boolean {
    return this.#response.headersSent;
  }

  startWaiting(): void {
    if (this.gone) return;
    this.#watchSilence();
    const { completionTimeoutMs } = this.#timeouts;
    if (completionTimeoutMs !== undefined)
      this.#completion = setTimeout(() => this.#timeOut(), completionTimeoutMs);
  }

  begin(status: number, headers: OutgoingHttpHeaders): void {
    if (this.gone || this.begun) return;
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
    this.#watchSilence();
  }

  write(bytes: Uint8Array): boolean {
    if (this.gone || bytes.length === 0) return true;
    const room = this.#response.write(bytes);
    // While the viewer is slow, a pause does not count against the origin.
    if (room) this.#watchSilence();
    else clearTimeout(this.#silence);
    return room;
  }

  whenWritable(callback: () => void): void {
    if (this.gone) return callback();
    const once = () => {
      this.#response.off('drain', once).off('close', once);
      if (!this.gone) this.#watchSilence();
      callback();
    };
    this.#response.on('drain', once).on('close', once);
  }

  end(bytes?: Uint8Array): void {
    if (this.gone) return;
    this.#finish();
    this.#response.end(bytes);
  }

  abort(): void {
    this.#finish();
    this.#response.destroy();
  }

  #watchSilence(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#timeOut(), this.#timeouts.readTimeoutMs);
  }

  #timeOut(): void {
    if (this.begun) return this.abort();
    this.#response.writeHead(504, { 'content-type': 'text/html', 'x-cache': 'Error from cloudfront' });
    this.end(Buffer.from(timeoutPage));
  }

  #finish(): void {
    this.#ended = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#completion);
  }
}
