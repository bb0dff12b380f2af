import type { ServerResponse } from 'node:http';

/** The actions of a script towards the caller. Writes resolve when the network accepted the bytes. */
export class Reply {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Sends the status line and headers at once. A write without it answers 200 as an event stream. */
  head(status: number, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, headers).flushHeaders();
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    this.#start();
    await new Promise<void>((resolve) => {
      if (this.#response.destroyed) resolve();
      else this.#response.write(bytes, () => resolve());
    });
  }

  /** One event-stream frame per value: objects as JSON, strings unchanged. */
  async data(...frames: (object | string)[]): Promise<void> {
    for (const frame of frames)
      await this.write(`data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`);
  }

  end(bytes = ''): void {
    this.#start();
    this.#response.end(bytes);
  }

  json(status: number, value: unknown, headers: Record<string, string> = {}): void {
    this.#response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(value));
  }

  /** Cuts the connection with a TCP reset. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }

  /** Sends nothing more; resolves when the caller has disconnected. */
  async hang(): Promise<void> {
    if (this.#response.destroyed) return;
    await new Promise<void>((resolve) => this.#response.once('close', () => resolve()));
  }

  #start(): void {
    if (!this.#response.headersSent) this.head(200, { 'content-type': 'text/event-stream' });
  }
}
