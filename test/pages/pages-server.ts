import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defaultSettings, type Settings } from '../../shared/config/settings.ts';
import type { Snapshot } from '../../shared/config/snapshot.ts';
import { accountBody } from '../../shared/relay/account/account-handle.ts';
import { createCatalogHandle } from '../../shared/relay/catalog/catalog-handle.ts';
import type { HourOfRefusals } from '../../shared/relay/ports/money-stores.ts';
import type {
  AccountDay,
  AccountStatement,
  AccountTagBudget,
  UsageEntry,
} from '../../shared/wire/public-api.ts';
import { exampleOf } from '../support/billing-examples.ts';
import { keyRow } from '../support/core-rig.ts';

export interface SeenRequest {
  method: string;
  /** The raw request line. */
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

type Answering = (request: SeenRequest, response: ServerResponse) => unknown;

/** An empty page of this origin. */
export const emptyPath = '/empty';

const nothingSaid: Answering = (_request, response) => void response.end();

/** Both pages, from the function's own handle, next to account endpoints and a chat endpoint that a test scripts. */
export class PagesServer {
  readonly seen: SeenRequest[] = [];
  settings: Partial<Settings> = {};
  snapshot: Partial<Snapshot> = {};
  /** Newest first. */
  rows: UsageEntry[] = [];
  /** Newest first; the query selects from them. */
  days: AccountDay[] = [];
  /** How long the balance lasts, as the relay computes it. */
  daysLeft: number | null = null;
  refusals: HourOfRefusals[] = [];
  budgets: AccountTagBudget[] = [];
  /** Epoch milliseconds. */
  planUntil = 2e12;
  /** More attributes of the key's row. */
  key: Record<string, unknown> = {};
  statement: AccountStatement | undefined;
  /** More attributes of the account's row. */
  account: Record<string, unknown> = {};
  /** Answers POST /v1/chat/completions. */
  chat: Answering = nothingSaid;
  /** Answers a request first if it returns an answer. */
  instead: (request: SeenRequest, response: ServerResponse) => boolean = () => false;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  address = '';

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.address = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  clear(): void {
    const empty = { settings: {}, snapshot: {}, rows: [], days: [], refusals: [], chat: nothingSaid };
    Object.assign(this, empty, {
      daysLeft: null,
      planUntil: 2e12,
      account: {},
      budgets: [],
      key: {},
      statement: undefined,
      instead: () => false,
    });
    this.seen.length = 0;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get #current(): Snapshot {
    return {
      publishedAt: 0,
      channels: [],
      charges: [],
      plans: [],
      models: [],
      ...this.snapshot,
      settings: { ...defaultSettings, ...this.settings },
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method = '', url = '', headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(pieces).toString() };
    this.seen.push(seen);
    if (this.instead(seen, response)) return;
    if (url === emptyPath) return void response.writeHead(200, { 'content-type': 'text/html' }).end();
    const { pathname, searchParams } = new URL(url, this.address);
    if (pathname.startsWith('/v1/account')) return this.#account(seen, response);
    if (pathname === '/v1/chat/completions') {
      await this.chat(seen, response);
      return;
    }
    const answer = await this.#handle({
      id: 'request-1',
      method,
      path: pathname,
      query: searchParams,
      headers: headers as Record<string, string>,
      baseUrl: `${this.address}/v1`,
      json: async () => undefined,
      rawBody: () => '',
      hostDeadlineMs: Infinity,
    });
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  readonly #handle = createCatalogHandle({
    config: { current: async () => this.#current, notOlderThan: async () => this.#current },
    log: { request: () => undefined, event: () => undefined, fault: () => undefined },
    clock: { now: () => Date.now(), sleep: async () => undefined },
    version: '1',
    account: () => Promise.reject(new Error('answered here')),
    health: { entries: async () => new Map(), change: async () => false },
  });

  #account({ url, headers }: SeenRequest, response: ServerResponse): void {
    const json = (status: number, body: object): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (headers.authorization !== `Bearer ${pageKey}`)
      return json(401, { error: { message: 'The API key is not valid.' } });
    const { pathname, searchParams } = new URL(url, this.address);
    const from = Math.floor(Date.now() / 86_400_000) + 1 - Number(searchParams.get('days'));
    if (pathname === '/v1/account/statement')
      return json(this.statement ? 200 : 400, this.statement ?? { error: { message: 'Invalid month.' } });
    if (pathname === '/v1/account')
      return json(200, {
        ...accountBody({
          account: { account: 'acme', plan: { level: 1, since: 0, until: this.planUntil }, ...this.account },
          quota: undefined,
          key: keyRow({ hint: 'sk-page...0001', ...this.key }),
          snapshot: this.#current,
          nowMs: Date.now(),
          refusals: this.refusals,
          budgets: this.budgets,
          months: [],
          days: { from: from * 86_400, data: this.days.filter(({ day }) => day >= from * 86_400) },
        }),
        available: 41.25,
        spent: 8.75,
        granted: 50,
        days_left: this.daysLeft,
      });
    const [limit, at] = [Number(searchParams.get('limit')), Number(searchParams.get('cursor') ?? 0)];
    const endUser = searchParams.get('end_user');
    const rows = this.rows.filter((row) => endUser === null || row.end_user === endUser);
    const more = at + limit < rows.length;
    const data = rows.slice(at, at + limit);
    return json(200, { object: 'list', data, has_more: more, next_cursor: more ? String(at + limit) : null });
  }
}

export const pageKey = 'sk-page-0123456789';

const { data } = exampleOf('list') as { data?: UsageEntry[] };

/** A row of the ledger, `minutesAgo` old. */
export const usageRow = (id: string, minutesAgo: number, more: Partial<UsageEntry> = {}): UsageEntry => ({
  ...data![0]!,
  id,
  created: Math.floor(Date.now() / 1000) - minutesAgo * 60,
  ...more,
});

/** The usage of a model on a UTC day. */
export const dayUsage = (model: string, daysAgo: number, more: Partial<AccountDay> = {}): AccountDay => ({
  day: (Math.floor(Date.now() / 86_400_000) - daysAgo) * 86_400,
  model,
  calls: 1,
  failed_calls: 0,
  prompt_tokens: 1200,
  completion_tokens: 350,
  cached_tokens: 0,
  searches: 0,
  charge: 0.05,
  ...more,
});
