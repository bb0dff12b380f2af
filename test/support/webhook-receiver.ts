import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Hook {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface WebhookReceiver {
  /** Without a final slash. */
  address: string;
  /** All posts so far, oldest first. */
  hooks: Hook[];
  /** The statuses of the next answers, followed by 204. */
  statuses: number[];
  /** Waits until this many posts reached the path, and returns all of them. */
  received(path: string, count: number): Promise<Hook[]>;
  close(): Promise<void>;
}

/** A receiver of webhooks on loopback. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const hooks: Hook[] = [];
  const statuses: number[] = [];
  let arrived = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      hooks.push({ path: request.url ?? '', headers: request.headers, body });
      response.writeHead(statuses.shift() ?? 204, { location: '/elsewhere' }).end();
      arrived.resolve();
      arrived = Promise.withResolvers<void>();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hooks,
    statuses,
    async received(path, count) {
      for (;;) {
        const found = hooks.filter((hook) => hook.path === path);
        if (found.length >= count) return found;
        await arrived.promise;
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const hmac = (key: string, message: string): string =>
  createHmac('sha256', key).update(message).digest('hex');

/** The secret of a customer's receiver, as docs/operate.md describes it. */
export const secretOfCustomer = (secret: string, account: string): string =>
  hmac(secret, `contact:${account}`);

/** The signature as a receiver computes it. */
export const expectedSignature = ({ headers, body }: Hook, secret: string): string =>
  `v1=${hmac(secret, `${String(headers['x-relay-timestamp'])}.${body}`)}`;
