import { Readable } from 'node:stream';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { tablesOn } from '../support/sdk-tables.ts';
import { dynamoQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { localAccess } from '../unit/adapters/dynamodb/store.ts';

/**
 * What one request to DynamoDB meets: a refusal by name before anything is done, a connection that fails before or
 * after the request was carried out, or nothing special.
 */
export type Fault = Refusal | 'unsent' | 'reply lost' | 'none';
type Refusal = 'ThrottlingException' | 'TransactionConflictException' | 'TransactionCanceledException';

type Handler = DynamoDBClient['config']['requestHandler'];

/** DynamoDB's client, and the quota store on it, with a network below the SDK that fails on demand; SDK and emulator are real. */
export class FaultyDynamo implements AsyncDisposable {
  readonly store: QuotaStore;
  /** What the next requests meet, in order, and what all others do. */
  faults: Fault[] = [];
  otherwise: () => Fault = () => 'none';
  /** Requests that were carried out, their replies lost or not. */
  carriedOut = 0;
  requests = 0;
  readonly client: DynamoDBClient;

  constructor(endpoint: string) {
    this.client = new DynamoDBClient({ endpoint, ...localAccess, maxAttempts: 2 });
    const { requestHandler } = this.client.config;
    this.client.config.requestHandler = this.#around(requestHandler);
    this.store = dynamoQuotaStore(tablesOn(DynamoDBDocumentClient.from(this.client)), 'relay');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
  }

  #around(inner: Handler): Handler {
    const handle: Handler['handle'] = async (request, options) => {
      this.requests += 1;
      const fault = this.faults.shift() ?? this.otherwise();
      if (fault === 'unsent') throw connectionError('ECONNREFUSED');
      if (fault !== 'none' && fault !== 'reply lost') return { response: refusal(fault) };
      const reply = await inner.handle(request, options);
      this.carriedOut += 1;
      if (fault === 'reply lost') throw connectionError('ECONNRESET');
      return reply;
    };
    return Object.assign(Object.create(inner) as Handler, { handle });
  }
}

const connectionError = (code: string): Error => Object.assign(new Error('connection'), { code });

function refusal(name: Refusal) {
  // A transaction says of each of its writes why it was not done.
  const reasons = [{ Code: 'None' }, { Code: 'TransactionConflict' }];
  const body = {
    __type: `com.amazonaws.dynamodb.v20120810#${name}`,
    message: name,
    ...(name === 'TransactionCanceledException' && { CancellationReasons: reasons }),
  };
  return {
    statusCode: 400,
    headers: { 'content-type': 'application/x-amz-json-1.0' },
    body: Readable.from([Buffer.from(JSON.stringify(body))]),
  };
}

/** Time that passes by sleeping alone, at once. */
export class QuickClock implements Clock {
  nowMs = 1_763_700_000_000;

  now(): number {
    return this.nowMs;
  }

  async sleep(milliseconds: number): Promise<void> {
    this.nowMs += milliseconds;
  }
}
