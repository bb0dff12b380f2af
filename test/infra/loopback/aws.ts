/**
 * As much of AWS on a loopback port as deploying and using a relay needs: STS, SSM, S3, EC2's zones, CloudFormation, and DynamoDB by an
 * emulator. It keeps uploads and the account's resources, and rejects every call that it does not know.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Account, emptyAccount as account } from './account.ts';
import { SecretStore } from './secret-store.ts';
import { CloudFormationStacks } from './stacks.ts';
import type { EmulatedTables } from './tables.ts';
import { answerXml, refuse, type QueryCall } from './xml.ts';
import { answerZones } from './zones.ts';

export class LoopbackAws {
  /** Uploaded objects by the last part of their key. */
  readonly objects = new Map<string, Buffer>();
  readonly account = new Account();
  readonly secrets = new SecretStore(this.account);
  readonly stacks = new CloudFormationStacks(this.account, (key) => this.objects.get(key)?.toString('utf8'));
  /** One line per call, in order: `cloudformation CreateChangeSet`. */
  readonly calls: string[] = [];
  readonly #server: Server;
  readonly #tables: EmulatedTables | undefined;

  /** @param tables creates the tables of stacks, and reads and writes their rows */
  constructor(tables?: EmulatedTables) {
    this.#tables = tables;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        refuse(response, 'InternalFailure', String(error), 500);
      });
    });
  }

  /** Resolves with the value for AWS_ENDPOINT_URL. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const scope = /Credential=[^/]+\/\d+\/([^/]+)\/([^/]+)\//.exec(request.headers.authorization ?? '');
    const [, region = '', service] = scope ?? [];
    const target = String(request.headers['x-amz-target'] ?? '');
    const parameters = new URLSearchParams(target === '' ? body.toString('utf8') : '');
    const action = parameters.get('Action') ?? target;
    this.calls.push(`${service} ${action || `${request.method} ${request.url}`}`);
    if (service === 's3') return this.#objectStore(request, response, body);
    if (service === 'dynamodb' && this.#tables) {
      const recovered = await this.#tables.recovery?.answer(target, body);
      if (recovered === undefined) return forward(request, response, body, this.#tables.endpoint);
      response.writeHead(recovered.status, recovered.headers).end(recovered.body);
      return;
    }
    if (service === 'ssm') {
      const [status, answer] = this.secrets.answer(target, JSON.parse(body.toString('utf8')) as object);
      response
        .writeHead(status, { 'content-type': 'application/x-amz-json-1.1' })
        .end(JSON.stringify(answer));
      return;
    }
    const call: QueryCall = { action, parameters, region, response };
    if (service === 'sts') return identity(call);
    if (service === 'ec2' && action === 'DescribeAvailabilityZones') return answerZones(response, region);
    if (service !== 'cloudformation') return refuse(response, 'NotImplemented', `${service} ${action}`, 501);
    await this.stacks.answer(call, async () => this.#tables?.follow(this.account.standing));
  }

  #objectStore(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const url = new URL(request.url ?? '/', 'http://loopback');
    const key = url.pathname.split('/').at(-1) ?? '';
    if (request.method === 'PUT') {
      const chunked = request.headers['content-encoding']?.includes('aws-chunked') ?? false;
      this.objects.set(key, chunked ? joinChunks(body) : body);
      response.writeHead(200, { etag: '"loopback"' }).end();
      return;
    }
    const answer = url.searchParams.has('list-type')
      ? listed(this.objects.has(String(url.searchParams.get('prefix')?.split('/').at(-1))))
      : bucketAnswers.find(([query]) => url.searchParams.has(query))?.[1];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/xml' }).end(answer);
  }
}

/** Lists an asset if it exists, so that it is not uploaded again. */
const listed = (isThere: boolean): string =>
  `<ListBucketResult><KeyCount>${isThere ? 1 : 0}</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`;

const bucketAnswers = [
  ['location', '<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>'],
  [
    'encryption',
    '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>',
  ],
] as const;

/** The SDK's upload encoding: `<size in hex>;signature\r\n<bytes>\r\n`, ended by a chunk of size 0. */
function joinChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let offset = 0; ;) {
    const lineEnd = body.indexOf('\r\n', offset);
    const size = Number.parseInt(body.subarray(offset, lineEnd).toString('latin1'), 16);
    if (!size) return Buffer.concat(chunks);
    chunks.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    offset = lineEnd + 2 + size + 2;
  }
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  endpoint: string,
): Promise<void> {
  const signed = Object.entries(request.headers).filter(([name]) => /^(authorization|x-amz-.*)$/.test(name));
  const headers = Object.fromEntries([...signed, ['content-type', 'application/x-amz-json-1.0']]) as Record<
    string,
    string
  >;
  const reply = await fetch(endpoint, { method: 'POST', headers, body: new Uint8Array(body) });
  const answer = Buffer.from(await reply.arrayBuffer());
  const checksum = reply.headers.get('x-amz-crc32');
  response.writeHead(reply.status, {
    'content-type': 'application/x-amz-json-1.0',
    ...(checksum !== null && { 'x-amz-crc32': checksum }),
  });
  response.end(answer);
}

function identity(call: QueryCall): void {
  if (call.action === 'GetCallerIdentity') {
    answerXml(call, {
      Arn: `arn:aws:iam::${account}:user/loopback`,
      UserId: 'loopback',
      Account: account,
    });
    return;
  }
  answerXml(call, {
    Credentials: {
      AccessKeyId: 'AKIALOOPBACK',
      SecretAccessKey: 'loopback',
      SessionToken: 'loopback',
      Expiration: '2099-01-01T00:00:00Z',
    },
    AssumedRoleUser: { Arn: call.parameters.get('RoleArn') ?? '', AssumedRoleId: 'loopback' },
  });
}
