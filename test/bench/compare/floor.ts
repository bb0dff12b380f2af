/**
 * The least that a correct billed relay on Lambda does: it parses the body, takes money with one conditional write, passes
 * the answer's bytes on, looks for the usage in their end, and charges it with another write. By hand, with no package.
 */
import { createHash, createHmac } from 'node:crypto';
import { Agent, request as sendRequest, type IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';

const agent = new Agent({ keepAlive: true });
const tables = new URL(process.env['AWS_ENDPOINT_URL_DYNAMODB'] ?? '');
const upstream = new URL(process.env['UPSTREAM'] ?? '');
const held = 1000;

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const signingKeys = new Map<string, Buffer>();
function signingKey(day: string): Buffer {
  const kept = signingKeys.get(day);
  if (kept) return kept;
  const key = [day, 'us-east-1', 'dynamodb', 'aws4_request'].reduce<string | Buffer>(
    hmac,
    'AWS4local',
  ) as Buffer;
  signingKeys.set(day, key);
  return key;
}

function post(
  url: URL,
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = url;
    const length = String(Buffer.byteLength(body));
    const sent = sendRequest(
      {
        hostname,
        port,
        path,
        method: 'POST',
        agent,
        headers: { ...headers, host, 'content-length': length },
      },
      resolve,
    );
    sent.on('error', reject).end(body);
  });
}

async function update(input: object): Promise<Record<string, unknown>> {
  const body = JSON.stringify({ TableName: 'floor', Key: { id: { S: 'account' } }, ...input });
  const date = new Date().toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = date.slice(0, 8);
  const scope = `${day}/us-east-1/dynamodb/aws4_request`;
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    host: tables.host,
    'x-amz-date': date,
    'x-amz-target': 'DynamoDB_20120810.UpdateItem',
  };
  const names = Object.keys(headers).join(';');
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const asked = sha256(`POST\n/\n\n${lines.join('')}\n${names}\n${sha256(body)}`);
  const signature = hmac(signingKey(day), `AWS4-HMAC-SHA256\n${date}\n${scope}\n${asked}`).toString('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=local/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  const reply = await post(tables, '/', { ...headers, authorization }, body);
  let text = '';
  reply.setEncoding('utf8');
  for await (const piece of reply) text += piece as string;
  if (reply.statusCode !== 200) throw new Error(text);
  return JSON.parse(text) as Record<string, unknown>;
}

interface UrlEvent {
  rawPath: string;
  body: string;
}

export const handler = awslambda.streamifyResponse(async (event: UrlEvent, connection: Writable) => {
  const { model } = JSON.parse(event.body) as { model: string };
  const { Attributes } = await update({
    UpdateExpression: 'ADD used :held',
    ConditionExpression: 'enabled = :yes AND quota > used',
    ExpressionAttributeValues: { ':held': { N: String(held) }, ':yes': { BOOL: true } },
    ReturnValues: 'ALL_NEW',
  });
  const allowed = (Attributes as { models: { SS: string[] } }).models.SS;
  if (!allowed.includes(model)) throw new Error('not allowed');
  const sent = { 'content-type': 'application/json', authorization: 'Bearer sk-upstream' };
  const reply = await post(upstream, event.rawPath, sent, event.body);
  const headers = { 'content-type': reply.headers['content-type'] ?? '', 'cache-control': 'no-cache' };
  const stream = awslambda.HttpResponseStream.from(connection, {
    statusCode: reply.statusCode ?? 502,
    headers,
  });
  let end = Buffer.alloc(0);
  for await (const bytes of reply as AsyncIterable<Buffer>) {
    end = Buffer.concat([end, bytes]).subarray(-2048);
    if (!stream.write(bytes)) await new Promise((resolve) => stream.once('drain', resolve));
  }
  stream.end();
  const [, prompt, completion] = /"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(end.toString()) ?? [];
  const cost = Number(prompt ?? 0) + Number(completion ?? 0);
  await update({
    UpdateExpression: 'ADD used :rest',
    ExpressionAttributeValues: { ':rest': { N: String(cost - held) } },
  });
});
