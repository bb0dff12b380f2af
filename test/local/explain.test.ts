/** `ops request` explains refused, failed, retried, slow and abandoned calls on the running stack. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { keyHash } from '../../shared/wire/ids.ts';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { runOps, type OpsRun } from '../ops/run-ops.ts';
import { startScriptedUpstream, type Script, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { errorStatus } from '../support/upstream-failures.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { textStream } from '../support/upstream-scripts.ts';

/** Words in a prompt, in upstreams' answers and in a secret; no log line may contain them. */
const canaries = { prompt: 'CANARYprompt', upstream: 'CANARYupstream', secret: 'CANARYsecret' };
const poor = `sk-${'p'.repeat(48)}`;
const limited = `sk-${'l'.repeat(48)}`;
const foreign = {
  message: canaries.upstream,
  code: canaries.upstream,
  type: canaries.upstream,
  param: canaries.upstream,
};
const within = { timeout: 20_000, interval: 500 };

let upstreams: [ScriptedUpstream, ScriptedUpstream, ScriptedUpstream];
let stack: WatchedStack;

beforeAll(async () => {
  upstreams = await Promise.all([startScriptedUpstream(), startScriptedUpstream(), startScriptedUpstream()]);
  const [first, second, third] = upstreams;
  const channel = (id: string, upstream: ScriptedUpstream, more: object) => ({
    id,
    endpoint: upstream.endpoint,
    secret: 'env:EXPLAINED_KEY',
    state: true,
    ...more,
  });
  stack = await startWatchedStack({
    environmentsMax: 1,
    functionEnvironment: { EXPLAINED_KEY: canaries.secret },
    rows: [
      ['channels', channel('preferred', first, { models: ['trio', 'steady', 'refused'], priority: 3 })],
      ['channels', channel('reserve', second, { models: ['trio'], priority: 2 })],
      ['channels', channel('last', third, { models: ['trio'], priority: 1 })],
      ['channels', channel('hasty', first, { models: ['late'], first_content_seconds: 1 })],
      ['channels', channel('paid', third, { models: ['dear'] })],
      ['charges', { id: 1, type: 'token-billing', models: ['dear'], input: 1, output: 2 }],
      ['keys', { hash: keyHash(poor), account: 'poor', hint: 'sk-...pppp' }],
      ['keys', { hash: keyHash(limited), account: 'limited', hint: 'sk-...llll', rpm: 1 }],
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all((upstreams ?? []).map((upstream) => upstream.close()));
});
beforeEach(() => {
  for (const upstream of upstreams) upstream.script(textStream('Hello there.'));
});

const ops = (...words: string[]): Promise<OpsRun> =>
  runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: stack.store.endpoint });

/** Makes a call to its end. Returns its id. */
async function call(model: string, key?: string): Promise<string> {
  const response = await stack.post(
    { model, stream: true, messages: [{ role: 'user', content: canaries.prompt }] },
    key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } },
  );
  await response.text();
  return response.headers.get('x-request-id') ?? '';
}

/** The output of `ops request`, once everything is logged. */
async function storyOf(id: string, ...words: RegExp[]): Promise<string> {
  await vi.waitFor(async () => {
    const { output } = await ops('request', 'show', id);
    for (const each of words) expect(output).toMatch(each);
  }, within);
  const { output } = await ops('request', 'show', `chatcmpl-${id.slice(0, 22)}`);
  for (const each of words) expect(output).toMatch(each);
  return output;
}

const slowly =
  (ms: number): Script =>
  async (asked, reply) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    await textStream('Hello there.')(asked, reply);
  };

describe('`ops request` explains a call', () => {
  it('that failed over twice and was answered', async () => {
    upstreams[0].script(errorStatus(503, foreign));
    upstreams[1].script(errorStatus(429, foreign, { 'retry-after': '30' }));
    const id = await call('trio');
    const story = await storyOf(
      id,
      /tried \+\d+ ms +channel preferred, upstream_status_503, after \d+ ms, status 503/,
      /tried \+\d+ ms +channel reserve, upstream_status_429, after \d+ ms, status 429, error code other/,
      /tried \+\d+ ms +channel last, answered, first content after \d+ ms, status 200/,
      /answered +status 200, first text after \d+ ms, \d+ characters/,
      /\n {2}config {2,}version \d+/,
      /Next: another channel answered/,
    );
    expect(story).toMatch(/fields +.*messages/);
  });

  it('whose model its upstream does not know, in the relay’s own words', async () => {
    const unknown = { error: { message: 'No such model.', code: 'model_not_found' } };
    upstreams[0].script(errorStatus(404, unknown));
    const story = await storyOf(
      await call('steady'),
      /because +upstream_refused_404/,
      /Next: preferred has a wrong endpoint or does not know steady/,
    );
    expect(story).not.toMatch(/charge explain/);
  });

  it('whose next channel is in cooldown', async () => {
    upstreams[0].script(errorStatus(400, foreign));
    const story = await storyOf(
      await call('trio'),
      /skipped +channel reserve, waiting for the Retry-After of its upstream, rate_limit, for another \d+ s/,
      /because +upstream_refused_400/,
      /Next: the upstream rejected the request as invalid/,
    );
    expect(story).not.toContain(canaries.prompt);
  });

  it('that the balance does not cover', async () => {
    const id = await call('dear', poor);
    const story = await storyOf(
      id,
      /customer poor, key sk-\.\.\.pppp/,
      /wanted +needed 0?\.?\d+.*, free 0/,
      /because +quota_insufficient/,
      /answered +status 429 insufficient_quota/,
      /Not charged: there is no ledger row\./,
      /Next: the balance is too low: top up with npx --no relay-ops grant new poor AMOUNT/,
    );
    expect(story).not.toContain(canaries.prompt);
  });

  it('that exceeds a limit of its key', async () => {
    await call('steady', limited);
    const story = await storyOf(
      await call('steady', limited),
      /wanted +limit rate, most 1/,
      /because +limit_rate/,
      /Next: the key reached its limit/,
    );
    expect(story).not.toContain(canaries.prompt);
  });

  it('whose channel started no answer in time', async () => {
    upstreams[0].script(slowly(3_000));
    const story = await storyOf(
      await call('late'),
      /channel hasty, upstream_first_content_timeout, after 1\d\d\d ms/,
      /answered +status 504 upstream_timeout/,
      /Next: hasty did not start to answer in time: check first_content_seconds of the channel/,
    );
    expect(story).not.toContain(canaries.prompt);
  });

  it('that started late', async () => {
    upstreams[0].script(slowly(5_200));
    const id = await call('steady');
    await storyOf(id, /Next: the first content was late/);
    const listed = await ops('request', 'list', '--status', 'slow', '--channel', 'preferred', '--json');
    expect(JSON.parse(listed.output)).toMatchObject([{ id, channel: 'preferred', model: 'steady' }]);
  });

  it('with an unknown key, and finds nothing for an unknown id', async () => {
    const id = await call('steady', `sk-${'x'.repeat(48)}`);
    await storyOf(
      id,
      /unknown key/,
      /answered +status 401 invalid_api_key/,
      /Next: the key is unknown or not usable/,
    );
    const never = await ops('request', 'show', `${id.slice(0, 10)}zzzzzzzzzzzzzzzz`);
    expect(never).toMatchObject({ code: 1, output: expect.stringContaining('local tables') });
    expect(never.errors).toMatch(/no ledger row .* the log has no entry within \d+ minutes of/);
  });

  it('whose client left before the end', async () => {
    const release = Promise.withResolvers<void>();
    upstreams[0].script(async (_asked, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'Hello' }));
      await release.promise;
      for (let each = 0; each < 50; each += 1) await reply.data(chunk({ content: ' there' }));
      await reply.data(chunk({}, 'stop'), usageChunk(), '[DONE]');
      reply.end();
    });
    // Lambda does not report it to functions, so the answer and its explanation are complete.
    const leave = new AbortController();
    const response = await stack.post(
      { model: 'steady', stream: true, messages: [{ role: 'user', content: canaries.prompt }] },
      { signal: leave.signal },
    );
    await response.body?.getReader().read();
    leave.abort();
    setTimeout(release.resolve, 500);
    const story = await storyOf(
      response.headers.get('x-request-id') ?? '',
      /answered +status 200, finished after \d+ ms/,
      /ended +settled: answered in full or in part \(completed\)/,
    );
    expect(story).not.toContain(canaries.prompt);
  });
});

describe('`ops requests`', () => {
  it('prints its search first, then lists the requested calls', async () => {
    const refused = await ops('request', 'list', '--account', 'poor', '--since', '1h', '--status', 'refused');
    expect(refused.errors).toMatch(
      /^Searching the log groups relay-chat, relay-responses, .* from \S+Z to \S+Z \(about 0\.\d+ MB\)\n/,
    );
    expect(refused.output).toMatch(/poor +dear +none +429 insufficient_quota +quota_insufficient/);
    const failed = await ops('request', 'list', '--model', 'late', '--status', 'failed');
    expect(failed.output).toMatch(/late +hasty +504 upstream_timeout/);
    const slow = await ops('request', 'list', '--slower-than', '1s', '--json');
    const took = (JSON.parse(slow.output) as { duration_ms: string }[]).map((each) =>
      Number(each.duration_ms),
    );
    expect(took.length).toBeGreaterThan(0);
    expect(Math.min(...took)).toBeGreaterThan(1000);
    await call('nobody-serves-this');
    await expect
      .poll(async () => (await ops('request', 'list', '--model', 'nobody-serves-this')).output, {
        timeout: 5_000,
      })
      .toMatch(/404 model_not_found +no_channel/);
    expect((await ops('request', 'list', '--account', 'a"b')).code).toBe(2);
  });
});

describe('the end user of a call', () => {
  it('appears in its log line, its ledger row, sums and the usage of its account, on each endpoint', async () => {
    const named = { model: 'steady', stream: true, user: 'alice' };
    const messages = [{ role: 'user', content: canaries.prompt }];
    const { user: _, ...unnamed } = named;
    const headers = { 'x-relay-tags': 'team=search,cost-center=a b', 'x-claude-code-session-id': 'one' };
    const asked = {
      chat: { ...named, messages },
      responses: { ...named, input: canaries.prompt },
      messages: { ...unnamed, metadata: { user_id: 'alice' }, max_tokens: 64, messages },
    };
    const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
    for (const [name, body] of Object.entries(asked)) {
      const response = await stack.post(body, { path: paths[name as keyof typeof paths], headers });
      expect(response.status).toBe(200);
      await response.text();
    }
    const tags = { team: 'search', 'cost-center': 'a b', session: 'one' };
    const usage = async (query: string): Promise<Record<string, unknown>[]> => {
      const authorization = `Bearer ${stack.key}`;
      const response = await fetch(`${stack.origin}/v1/account/usage?${query}`, {
        headers: { authorization },
      });
      return ((await response.json()) as { data: Record<string, unknown>[] }).data;
    };
    await vi.waitFor(async () => {
      const words = ['--tag', 'team=search,cost-center=a b,session=one', '--end-user', 'alice'];
      expect(JSON.parse((await ops('request', 'list', ...words, '--json')).output)).toHaveLength(3);
      expect(JSON.parse((await ops('ledger', 'list', ...words, '--json')).output)).toHaveLength(3);
      const rows = await usage('end_user=alice&tag=team%3Dsearch');
      expect(rows.map(({ endpoint }) => endpoint)).toEqual(['messages', 'responses', 'chat']);
      expect(rows[0]).toMatchObject({ end_user: 'alice', tags });
    }, within);
    expect(await usage('by=tag:session')).toContainEqual(
      expect.objectContaining({ name: 'one', requests: 3 }),
    );
    const total = await ops('ledger', 'total', '--by', 'end_user,tag:cost-center', '--csv');
    expect(total.output).toMatch(/\nalice,a b,3,/);
    const malformed = await stack.post(asked.chat, { headers: { 'x-relay-tags': 'team' } });
    expect([malformed.status, await malformed.json()]).toMatchObject([
      400,
      { error: { param: 'x-relay-tags' } },
    ]);
  });
});

describe('an account', () => {
  it('sees its refused calls, by code and hour', async () => {
    await vi.waitFor(async () => {
      const response = await fetch(`${stack.origin}/v1/account`, {
        headers: { authorization: `Bearer ${poor}` },
      });
      expect(await response.json()).toMatchObject({
        errors: [{ code: 'insufficient_quota', count: 1, hour: expect.any(Number) }],
      });
    }, within);
  });
});

describe('no line of the log', () => {
  it('contains a prompt, a secret or words of an upstream', () => {
    const lines = stack.lines.filter((line) => line.includes('"message":"request"'));
    expect(lines.length).toBeGreaterThan(6);
    for (const canary of [...Object.values(canaries), poor, limited])
      expect(lines.filter((line) => line.includes(canary))).toEqual([]);
  });
});
