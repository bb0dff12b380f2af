import { openSession } from '../../infra/ops/session/session.ts';
import { serveConsole, type ServedConsole } from '../../infra/ops/console/serve.ts';
import type { OperatorPorts } from '../../shared/operate/operator-ports.ts';
import type { Browser } from 'playwright-core';
import { startBrowser } from '../support/browser.ts';
import { emulatorClient, startEmulator, type Emulator, type TableItems } from '../support/emulator.ts';
import { buildRelay } from './large-relay.ts';

export interface ConsoleRig {
  emulator: Emulator;
  ports: OperatorPorts;
  client: ReturnType<typeof emulatorClient>;
  /** Unexpected errors of pages, in order. */
  faults: unknown[];
  serve(options?: { readOnly?: boolean; ports?: OperatorPorts }): Promise<ServedConsole>;
  stop(): Promise<void>;
}

/** Consoles over tables of an emulator. */
export async function startConsoleRig(items: TableItems = {}): Promise<ConsoleRig> {
  const emulator = await startEmulator('relay', { streams: false, items });
  const client = emulatorClient(emulator.endpoint);
  const target = { stack: 'relay', endpoint: emulator.endpoint, local: true };
  const { ports } = await openSession(target, {});
  const served: ServedConsole[] = [];
  const faults: unknown[] = [];
  return {
    emulator,
    ports,
    client,
    faults,
    async serve(options = {}) {
      const one = await serveConsole(options.ports ?? ports, {
        readOnly: options.readOnly ?? false,
        port: 0,
        where: 'relay, local tables',
        name: 'local',
        onFault: (error) => faults.push(error),
      });
      served.push(one);
      return one;
    },
    async stop() {
      for (const one of served) one.stop();
      client.destroy();
      await emulator.stop();
    },
  };
}

/** With calls of half a day before and after that moment, a running clock, and a browser. */
export function startWatchedRig(nowMs: number): Promise<[ConsoleRig, Browser]> {
  const lastMs = nowMs + 12 * 3_600_000;
  const items = buildRelay({ nowMs: lastMs, accounts: 60, models: 40, channels: 8, rows: 10 });
  return Promise.all([startConsoleRig(items), startBrowser()]);
}

/** A visitor without a browser, who reads pages with the session's cookie. */
export interface Visitor {
  base: string;
  cookie: string;
  origin: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  page(path: string): Promise<string>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Response>;
  /** Fills in the form of a page with the current row, and submits it. */
  send(path: string, fields?: Record<string, string>): Promise<Response>;
  /** The page that a reply redirects to or contains. */
  follow(reply: Response): Promise<string>;
}

/** Opens the address that the console printed, as a browser does. */
export async function enter({ address }: ServedConsole): Promise<Visitor> {
  const reply = await fetch(address, { redirect: 'manual' });
  const base = new URL(reply.headers.get('location') ?? '', address).href;
  const cookie = (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const { origin } = new URL(address);
  const visitor: Visitor = {
    base,
    cookie,
    origin,
    get: (path, headers = {}) => fetch(base + path, { redirect: 'manual', headers: { cookie, ...headers } }),
    page: async (path) => (await visitor.get(path)).text(),
    post: (path, fields, headers = {}) =>
      fetch(base + path, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie, origin, ...headers },
        body: new URLSearchParams(fields),
      }),
    async send(path, fields = {}) {
      const page = await visitor.page(path);
      return visitor.post(path, { form_token: tokenIn(page), seen: seenIn(page), ...fields });
    },
    async follow(sent) {
      const location = sent.headers.get('location');
      return location === null ? sent.text() : visitor.page(new URL(location, base).href.slice(base.length));
    },
  };
  return visitor;
}

/** The read cost that a page reports. */
export function costOf(page: string): { requests: number; bytes: number } {
  const [, requests, bytes] = /data-requests="(\d+)" data-bytes="(\d+)"/.exec(page) ?? [];
  return { requests: Number(requests), bytes: Number(bytes) };
}

/** The address of the stream of a page. */
export const watchedBy = (page: string): string =>
  (/data-live="([^"]*)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&');

export const tokenIn = (page: string): string => /name="form_token" value="(\w+)"/.exec(page)?.[1] ?? '';
export const seenIn = (page: string): string => /name="seen" value="(\w+)"/.exec(page)?.[1] ?? '';
