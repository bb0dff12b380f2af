/**
 * As much of AWS on a loopback port as one `cdk deploy` needs: STS, SSM, S3 and CloudFormation. It keeps what was
 * uploaded and the template that was executed, and refuses every call that it does not know.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Account, emptyAccount as account } from './account.ts';
import { ResourceSchemas } from './schemas.ts';
import { CloudFormationStacks } from './stacks.ts';
import { answerXml, refuse, type QueryCall } from './xml.ts';

export class LoopbackAws {
  /** Uploaded objects by the last part of their key. */
  readonly objects = new Map<string, Buffer>();
  readonly account = new Account();
  readonly stacks = new CloudFormationStacks(this.account, new ResourceSchemas(), (key) =>
    this.objects.get(key)?.toString('utf8'),
  );
  /** One line per call, in order: `cloudformation CreateChangeSet`. */
  readonly calls: string[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#serve(request, response);
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
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const scope = /Credential=[^/]+\/\d+\/([^/]+)\/([^/]+)\//.exec(request.headers.authorization ?? '');
    const [, region = '', service] = scope ?? [];
    const parameters = new URLSearchParams(body.toString('utf8'));
    const action = parameters.get('Action') ?? '';
    this.calls.push(`${service} ${action || `${request.method} ${request.url}`}`);
    if (service === 's3') return this.#objectStore(request, response, body);
    if (service === 'ssm') return bootstrapVersion(response);
    const call: QueryCall = { action, parameters, region, response };
    if (service === 'sts') return identity(call);
    if (service === 'cloudformation') return this.stacks.answer(call);
    return refuse(response, 'NotImplemented', `${service} ${action}`, 501);
  }

  #objectStore(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const url = new URL(request.url ?? '/', 'http://loopback');
    if (request.method === 'PUT') {
      const chunked = request.headers['content-encoding']?.includes('aws-chunked') ?? false;
      this.objects.set(url.pathname.split('/').at(-1) ?? '', chunked ? joinChunks(body) : body);
      response.writeHead(200, { etag: '"loopback"' }).end();
      return;
    }
    const answer = bucketAnswers.find(([query]) => url.searchParams.has(query))?.[1];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/xml' }).end(answer);
  }
}

const bucketAnswers = [
  ['location', '<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>'],
  [
    'encryption',
    '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>',
  ],
  [
    'list-type',
    '<ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>',
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

/** The account counts as bootstrapped by a recent CDK. */
function bootstrapVersion(response: ServerResponse): void {
  const parameter = { Name: '/cdk-bootstrap/hnb659fds/version', Type: 'String', Value: '30' };
  response.writeHead(200, { 'content-type': 'application/x-amz-json-1.1' });
  response.end(JSON.stringify({ Parameter: parameter }));
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
