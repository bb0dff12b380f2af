import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** A test function that waits at a named place until it is answered. */
export interface Call {
  body: unknown;
  answer(value?: unknown): void;
}

/** The test's end of `fixtures/control.mjs`: waits for functions at named places and lets them continue. */
export interface Control {
  url: string;
  /** The next arrival at that place, including earlier ones. */
  next(place: string): Promise<Call>;
  close(): Promise<void>;
}

export async function startControl(): Promise<Control> {
  const arrivals = new Map<string, Call[]>();
  const waiters = new Map<string, ((call: Call) => void)[]>();
  const server = createServer((request, response) => {
    void json(request).then((body) => arrive((request.url ?? '').slice(1), body, response));
  });
  const arrive = (place: string, body: unknown, response: ServerResponse) => {
    const call = { body, answer: (value: unknown = null) => void response.end(JSON.stringify(value)) };
    const waiter = waiters.get(place)?.shift();
    if (waiter) waiter(call);
    else arrivals.set(place, [...(arrivals.get(place) ?? []), call]);
  };
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next(place) {
      const call = arrivals.get(place)?.shift();
      if (call !== undefined) return Promise.resolve(call);
      return new Promise((resolve) => {
        waiters.set(place, [...(waiters.get(place) ?? []), resolve]);
      });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
