import { expect, it } from 'vitest';
import { readBehaviours } from '../../infra/local/distribution.ts';

const behaviours = readBehaviours({
  Origins: [
    { Id: 'chat', DomainName: 'chat.example', CustomOriginConfig: { OriginReadTimeout: 60 } },
    {
      Id: 'catalog',
      DomainName: 'catalog.example',
      OriginCustomHeaders: [{ HeaderName: 'X-Origin', HeaderValue: 's' }],
    },
  ],
  CacheBehaviors: [
    { PathPattern: '/v1/chat/*', TargetOriginId: 'chat', AllowedMethods: ['GET', 'POST'] },
    { PathPattern: 'v1/models?', TargetOriginId: 'chat' },
  ],
  DefaultCacheBehavior: { TargetOriginId: 'catalog' },
});
const domainOf = (path: string) => behaviours.find((behaviour) => behaviour.matches(path))?.origin.domain;

it.each([
  ['/v1/chat/completions', 'chat.example'],
  ['/v1/chat/', 'chat.example'],
  ['/v1/chat', 'catalog.example'],
  ['/v1/modelsX', 'chat.example'],
  ['/v1/models', 'catalog.example'],
  ['/V1/chat/completions', 'catalog.example'],
  ['/', 'catalog.example'],
])('the path %s goes to %s', (path, domain) => {
  expect(domainOf(path)).toBe(domain);
});

it('an origin uses its headers and its time-out, by default 30 s', () => {
  expect(behaviours.map(({ origin }) => origin.readTimeoutMs)).toEqual([60_000, 60_000, 30_000]);
  expect(behaviours.at(-1)?.origin.headers).toEqual({ 'x-origin': 's' });
  expect(behaviours.map(({ methods }) => Array.from(methods))).toEqual([
    ['GET', 'POST'],
    ['GET', 'HEAD'],
    ['GET', 'HEAD'],
  ]);
});
