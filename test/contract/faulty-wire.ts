import { Agent, createServer, request as sendRequest, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createTableClient, type TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { localAccess } from '../unit/adapters/dynamodb/store.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';

/**
 * The fate of one request to DynamoDB: a named refusal before anything is done, a connection that fails before or after
 * the request is applied, or no fault.
 */
export type Fault =
  | 'ThrottlingException'
  | 'TransactionConflictException'
  | 'TransactionCanceledException'
  | 'unsent'
  | 'reply lost'
  | 'none';

/** The quota store on the client of hot paths, over a network that fails on demand with real refused connections. */
export class FaultyWire implements AsyncDisposable {
  readonly tables: TableClient;
  readonly store: QuotaStore;
  faults: Fault[] = [];
  otherwise: () => Fault = () => 'none';
  carriedOut = 0;
  requests = 0;
  readonly #server: Server;
  readonly #agent: Agent;
  /** The fault of the next connection; a connection carries one request. */
  #fault: Fault[] = [];

  private constructor(endpoint: string) {
    this.#server = createServer((request, response) => {
      void this.#serve(endpoint, request).then((reply) => {
        if (reply === undefined) response.destroy();
        else response.writeHead(reply.status, reply.headers).end(reply.body);
      });
    });
    const ownPort = (): number => (this.#server.address() as AddressInfo).port;
    this.#agent = new Agent();
    this.#agent.createConnection = () => {
      this.requests += 1;
      const fault = this.faults.shift() ?? this.otherwise();
      if (fault === 'unsent') return connect(1, '127.0.0.1');
      this.#fault.push(fault);
      return connect(ownPort(), '127.0.0.1');
    };
    this.tables = createTableClient(localAccess, { agent: this.#agent });
    this.store = createQuotaStore(this.tables, 'relay');
  }

  static async open(endpoint: string): Promise<FaultyWire> {
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = endpoint;
    const wire = new FaultyWire(endpoint);
    await once(wire.#server.listen(0, '127.0.0.1'), 'listening');
    return wire;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    this.#server.close().closeAllConnections();
  }

  /** Undefined when the reply is lost. */
  async #serve(endpoint: string, request: IncomingMessage) {
    const body = await buffer(request);
    const fault = this.#fault.shift() ?? 'none';
    if (fault !== 'none' && fault !== 'reply lost') {
      const text = JSON.stringify({
        __type: `com.amazonaws.dynamodb.v20120810#${fault}`,
        message: fault,
        // DynamoDB gives a reason for each write of a cancelled transaction.
        ...(fault === 'TransactionCanceledException' && {
          CancellationReasons: [{ Code: 'None' }, { Code: 'TransactionConflict' }],
        }),
      });
      return { status: 400, headers: {}, body: Buffer.from(text) };
    }
    const sent = sendRequest(endpoint, { method: 'POST', headers: request.headers }).end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    const whole = { status: reply.statusCode ?? 0, headers: reply.headers, body: await buffer(reply) };
    this.carriedOut += 1;
    return fault === 'reply lost' ? undefined : whole;
  }
}

/** Time that passes only by sleeping, at once. */
export class QuickClock implements Clock {
  nowMs = 1_763_700_000_000;

  now(): number {
    return this.nowMs;
  }

  async sleep(milliseconds: number): Promise<void> {
    this.nowMs += milliseconds;
  }
}
