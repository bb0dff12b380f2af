import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createIdentityLookup } from '../../../../shared/adapters/aws/aws-request.ts';
import { listening } from '../../../support/listening.ts';

const access = { region: 'eu-west-1', credentials: { accessKeyId: 'AKIAME', secretAccessKey: 'secret' } };
const arn = 'arn:aws:sts::123456789012:assumed-role/operators/jane';

async function identityAt(listener: RequestListener): Promise<() => Promise<string>> {
  const server = createServer(listener);
  const address = await listening(server);
  const endpoint = address;
  const caller = { aws: () => Promise.resolve(access), environment: { AWS_ENDPOINT_URL_STS: endpoint } };
  return createIdentityLookup(caller, async () => 'AKIAME');
}

test('the caller is the ARN that STS says, asked for once and signed for STS', async () => {
  const asked: string[] = [];
  const identity = await identityAt((request, response) => {
    void text(request).then((body) => {
      asked.push(`${body} ${/\/eu-west-1\/sts\//.exec(request.headers.authorization ?? '')?.[0]}`);
      response.end(`<GetCallerIdentityResponse><Arn>${arn}</Arn></GetCallerIdentityResponse>`);
    });
  });
  expect(asked).toEqual([]);
  expect([await identity(), await identity()]).toEqual([arn, arn]);
  expect(asked).toEqual(['Action=GetCallerIdentity&Version=2011-06-15 /eu-west-1/sts/']);
});

test.each([
  ['refuses', (response: Parameters<RequestListener>[1]) => response.writeHead(403).end('<Code>No</Code>')],
  ['hangs up', (response: Parameters<RequestListener>[1]) => response.destroy()],
  ['says nothing', (response: Parameters<RequestListener>[1]) => response.end('<Arn></Arn>')],
])('where STS %s, the access key names the caller, and nothing fails', async (_case, answer) => {
  const identity = await identityAt((_request, response) => void answer(response));
  expect(await identity()).toBe('AKIAME');
});
