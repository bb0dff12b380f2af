import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { identifyCaller } from '../../../../shared/adapters/aws/caller-identity.ts';
import { listening } from '../../../support/listening.ts';

const access = { region: 'eu-west-1', credentials: { accessKeyId: 'AKIAME', secretAccessKey: 'secret' } };
const arn = 'arn:aws:sts::123456789012:assumed-role/operators/jane';

async function identifyAt(listener: RequestListener): Promise<string> {
  const endpoint = await listening(createServer(listener));
  const caller = { aws: async () => access, environment: { AWS_ENDPOINT_URL_STS: endpoint } };
  return identifyCaller(caller, async () => 'AKIAME');
}

const describeIdentity = (content: string): string =>
  `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>${content}</GetCallerIdentityResult></GetCallerIdentityResponse>`;

test('the caller is the ARN that STS returns for a signed request', async () => {
  const asked: string[] = [];
  const identity = await identifyAt((request, response) => {
    void text(request).then((body) => {
      asked.push(`${body} ${/\/eu-west-1\/sts\//.exec(request.headers.authorization ?? '')?.[0]}`);
      response.end(describeIdentity(`<Arn>${arn}</Arn>`));
    });
  });
  expect(identity).toBe(arn);
  expect(asked).toEqual(['Action=GetCallerIdentity&Version=2011-06-15 /eu-west-1/sts/']);
});

test.each([
  ['refuses', (response: Parameters<RequestListener>[1]) => response.writeHead(403).end('<Code>No</Code>')],
  ['hangs up', (response: Parameters<RequestListener>[1]) => response.destroy()],
  [
    'returns nothing',
    (response: Parameters<RequestListener>[1]) => response.end(describeIdentity('<Arn></Arn>')),
  ],
  ['is not STS', (response: Parameters<RequestListener>[1]) => response.end('<html><p>')],
])('the access key names the caller where STS %s, and nothing fails', async (_case, answer) => {
  expect(await identifyAt((_request, response) => void answer(response))).toBe('AKIAME');
});
