import { describe, expect, test } from 'vitest';
import { type RelayRequest } from '../../../../shared/relay/http/http.ts';
import { refuseRoute } from '../../../../shared/relay/http/refuse-route.ts';

const requestTo = (method: string, path: string): RelayRequest => ({
  id: 'request-1',
  method,
  path,
  query: new URLSearchParams(),
  headers: {},
  baseUrl: 'https://relay.example/v1',
  json: async () => undefined,
  rawBody: () => '',
  hostDeadlineMs: 60_000,
});

describe('an unknown path', () => {
  test.each([
    ['/chat/completions', 'https://relay.example/v1/chat/completions'],
    ['/v1/v1/chat/completions', 'https://relay.example/v1/chat/completions'],
    ['/v1//chat/completions/', 'https://relay.example/v1/chat/completions'],
    ['/openai/deployments/x/chat/completions', 'https://relay.example/v1/chat/completions'],
    ['/models', 'https://relay.example/v1/models'],
    ['/v1/models/', 'https://relay.example/v1/models'],
    ['/models/vendor/beta', 'https://relay.example/v1/models/vendor/beta'],
    ['/responses/resp-1', 'https://relay.example/v1/responses/resp-1'],
    ['/v1/v1/responses/resp-1/cancel', 'https://relay.example/v1/responses/resp-1/cancel'],
    ['/v1/responses/resp-1/', 'https://relay.example/v1/responses/resp-1'],
    ['/v1/responses/responses', 'https://relay.example/v1/responses'],
    ['/v1/responses/chat/completions', 'https://relay.example/v1/chat/completions'],
  ])('%s is answered with the base URL and %s', (path, meant) => {
    const { status, body } = refuseRoute(requestTo('POST', path));
    expect(status).toBe(404);
    expect(body.error.code).toBe('not_found');
    expect(body.error.message).toContain(`base URL of this relay is https://relay.example/v1,`);
    expect(body.error.message).toContain(meant);
  });

  test.each(['/v1/completions', '/v1/images/generations', '/v1', '/favicon.ico'])(
    '%s is answered with the available endpoints',
    (path) => {
      const { status, message } = refuseRoute(requestTo('POST', path));
      expect(status).toBe(404);
      expect(message).toContain(`${path} does not exist`);
      expect(message).toContain(
        'POST /v1/chat/completions, POST /v1/responses, POST /v1/messages, POST /v1/embeddings, POST /v1/messages/count_tokens, POST /v1/responses/input_tokens, POST /v1/responses/compact, GET /v1/models, GET /v1/charge',
      );
    },
  );
});
