import { readFileSync } from 'node:fs';
import { validate, dereference, type Schema } from '@cfworker/json-schema';
import { describe, expect, it } from 'vitest';
import { refusals } from '../../shared/relay/http/refusal.ts';
import { assetRoute, modelRoute, routes } from '../../shared/relay/http/http.ts';
import { selfServiceRoutes, storedResponseRoutes } from '../../shared/relay/http/refuse-route.ts';
import { stripePath } from '../../shared/relay/payments/payments-handle.ts';
import { asRecord, isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import { CoreRig, demoKey, hello, keyRow } from '../support/core-rig.ts';
import { buildDocument, documentFile } from './document.ts';
import { findProblems, prepareDocument, type Exchange } from './exchange.ts';
import { operations } from './operations.ts';

const document = buildDocument();
const schemas = asRecord(asRecord(document['components'])['schemas']);
const read = (file: string): JsonRecord => JSON.parse(readFileSync(file, 'utf8')) as JsonRecord;

function* valuesIn(value: unknown): Generator<JsonRecord> {
  if (Array.isArray(value)) for (const each of value) yield* valuesIn(each);
  if (!isRecord(value)) return;
  yield value;
  for (const inner of Object.values(value)) yield* valuesIn(inner);
}

describe('docs/openapi.json', () => {
  it('is current: node infra/bootstrap/bootstrap.mjs test/openapi/document.ts writes it', () => {
    expect(read(documentFile)).toEqual(document);
  });

  it("fits the OpenAPI Initiative's schema of 3.1 documents", () => {
    const schema = read('test/openapi/oas-3.1.json') as Schema;
    const check = (value: JsonRecord) => validate(value, schema, '2020-12', dereference(schema), true);
    expect(check(document).errors).toEqual([]);
    expect(check({ ...document, path: {} }).valid).toBe(false);
    const { responses: _, ...rest } = asRecord(asRecord(asRecord(document['paths'])['/health'])['get']);
    expect(check({ ...document, paths: { '/health': { get: { ...rest, parameters: [{}] } } } }).valid).toBe(
      false,
    );
  });

  it('has no broken reference, and a unique id for each operation', () => {
    const found = [...valuesIn(document)];
    const missing = found
      .flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []))
      .filter(
        (ref) =>
          !isRecord(
            ref
              .split('/')
              .slice(1)
              .reduce<unknown>((inner, name) => asRecord(inner)[name], document),
          ),
      );
    expect(missing).toEqual([]);
    const ids = found.flatMap(({ operationId }) => (operationId === undefined ? [] : [operationId]));
    expect(ids).toEqual([...new Set(ids)]);
  });

  it('has every route that is served, and no other', () => {
    const served = [
      ...routes,
      modelRoute,
      assetRoute,
      ...storedResponseRoutes,
      ...selfServiceRoutes,
      { method: 'POST', path: stripePath },
    ].map(({ method, path }) => `${method} ${path}`);
    const documented = Object.entries(asRecord(document['paths'])).flatMap(([path, methods]) =>
      Object.keys(asRecord(methods)).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.toSorted()).toEqual(served.toSorted());
  });

  it('has every code of a refusal', () => {
    expect(asRecord(schemas['RefusalCode'])['enum']).toEqual(Object.keys(refusals));
  });
});

describe('an exchange that is compared with the document', () => {
  const closed = prepareDocument(buildDocument({ isClosed: true }));
  const messages = [{ role: 'user', content: 'hi' }];
  const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };

  async function exchange(path: string, body: object): Promise<Exchange> {
    const rig = new CoreRig().upstream({ steps: hello });
    return { method: 'POST', path, body, ...(await rig.post(body, { path })) };
  }
  const rename = (exchanged: Exchange, from: string, to: string): Exchange => ({
    ...exchanged,
    text: exchanged.text.replaceAll(`"${from}":`, `"${to}":`),
  });

  it.each([
    [paths.chat, { model: 'm', messages }, 'finish_reason', 'reason'],
    [paths.chat, { model: 'm', messages, stream: true }, 'delta', 'part'],
    [paths.responses, { model: 'm', input: 'hi' }, 'output_tokens', 'tokens'],
    [paths.responses, { model: 'm', input: 'hi', stream: true }, 'item_id', 'id_of_item'],
    [paths.messages, { model: 'm', max_tokens: 9, messages }, 'stop_reason', 'reason'],
    [paths.messages, { model: 'm', max_tokens: 9, messages, stream: true }, 'content_block', 'block'],
    [paths.chat, { model: 'm' }, 'param', 'parameter'],
    [paths.messages, { model: 'm', messages }, 'request_id', 'id'],
  ])('passes at %s with %j, and fails if %s has another name', async (path, body, from, to) => {
    const exchanged = await exchange(path, body);
    expect(findProblems(exchanged, closed)).toEqual([]);
    expect(findProblems(rename(exchanged, from, to), closed)).not.toEqual([]);
  });

  it('passes on every path of calls and of stored responses', async () => {
    const vectors = { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 1, total_tokens: 1 } };
    const rig = new CoreRig({ keys: { [demoKey]: { row: keyRow({ store: true }) } } }).upstream(
      { headers: { 'content-type': 'application/json' }, steps: [JSON.stringify(vectors)] },
      { steps: hello },
    );
    const seen: string[] = [];
    const ask = async (
      route: string,
      body?: object,
      more: Parameters<CoreRig['post']>[1] = {},
    ): Promise<JsonRecord> => {
      const [method = '', template = ''] = route.split(' ');
      seen.push(route);
      const id = `01testrequest${String(seen.length).padStart(13, '0')}`;
      const options = { id, path: template, method, ...more };
      const answer = await rig.post(body, options);
      expect([route, answer.status, answer.text]).toEqual([route, 200, answer.text]);
      expect(findProblems({ body, ...options, ...answer }, closed)).toEqual([]);
      return answer.text.startsWith('{') ? (JSON.parse(answer.text) as JsonRecord) : {};
    };
    const asked = { model: 'm', input: 'hi' };
    const stored = { ...asked, store: true };
    await ask('POST /v1/embeddings', asked);
    await ask('POST /v1/chat/completions', { model: 'm', messages });
    await ask('POST /v1/messages', { model: 'm', max_tokens: 9, messages });
    await ask('POST /v1/messages/count_tokens', { model: 'm', messages });
    await ask('POST /v1/responses/input_tokens', asked);
    await ask('POST /v1/responses/compact', asked);
    await ask('POST /v1/responses', { ...asked, input: [messages[0], { type: 'compaction_trigger' }] });
    const pathOf = ({ id }: JsonRecord): string => `${paths.responses}/${String(id)}`;
    const path = pathOf(await ask('POST /v1/responses', stored));
    await ask('GET /v1/responses/{id}', undefined, { path });
    await ask('GET /v1/responses/{id}/input_items', undefined, { path: `${path}/input_items` });
    await ask('DELETE /v1/responses/{id}', undefined, { path });
    await ask('POST /v1/responses', { ...stored, background: true, stream: true }, { leaveAfter: 1 });
    const running = pathOf({ id: rig.stored.started.at(-1)?.id });
    await ask('GET /v1/responses/{id}', undefined, { path: running });
    await rig.runs();
    const query = new URLSearchParams({ stream: 'true' });
    await ask('GET /v1/responses/{id}', undefined, { path: running, query });
    await ask('POST /v1/responses/{id}/cancel', undefined, { path: `${running}/cancel` });
    const tagged = Object.entries(operations).flatMap(([route, { tag }]) =>
      tag === 'calls' || tag === 'stored responses' ? [route] : [],
    );
    expect([...new Set(seen)].toSorted()).toEqual(tagged.toSorted());
  });

  it('fails for an undocumented answer field, header or status', async () => {
    const exchanged = await exchange(paths.responses, { model: 'm', input: 'hi' });
    const { text, headers } = exchanged;
    expect(findProblems({ ...exchanged, text: text.replace('{', '{"more":1,') }, closed)).not.toEqual([]);
    expect(findProblems({ ...exchanged, headers: { ...headers, 'x-relay-more': '1' } }, closed)).not.toEqual(
      [],
    );
    expect(findProblems({ ...exchanged, status: 202 }, closed)).not.toEqual([]);
  });

  it('passes with a new answer field by the published document', async () => {
    const exchanged = await exchange(paths.responses, { model: 'm', input: 'hi' });
    const grown = { ...exchanged, text: exchanged.text.replace('{', '{"more":1,') };
    expect(findProblems(grown, prepareDocument(document))).toEqual([]);
  });
});
