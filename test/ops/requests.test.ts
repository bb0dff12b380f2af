/** `ops request` and `ops requests` on a deployed stack: CloudWatch Logs is a double on loopback. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { explainMissingRow } from '../../shared/operate/requests/explain-request.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { startAws, type AwsOnLoopback } from './aws-on-loopback.ts';
import { runOps, type OpsRun } from './run-ops.ts';

const at = Date.parse('2026-11-10T16:00:00Z');
const id = `${timeText(at)}abcdefghjkmnpqrs`;
const line = {
  message: 'request',
  request_id: id,
  account: 'acme',
  model: 'm',
  channel: 'none',
  status: 429,
};
const lines = [
  {
    ...line,
    code: 'insufficient_quota',
    reason: 'quota_insufficient',
    outcome: 'refused',
    duration_ms: 12,
    facts: { needed: '2', free: '0.5' },
  },
];

let aws: AwsOnLoopback;
let emulator: Emulator;
beforeAll(async () => {
  [aws, emulator] = await Promise.all([startAws('https://d111.cloudfront.net/v1'), startEmulator()]);
});
afterAll(() => Promise.all([aws.close(), emulator.stop()]));

async function ops(...words: string[]): Promise<OpsRun> {
  const names = ['CLOUDFORMATION', 'CLOUDWATCH_LOGS', 'SSM'].map((name) => `AWS_ENDPOINT_URL_${name}`);
  const environment = {
    ...Object.fromEntries(names.map((name) => [name, aws.endpoint])),
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'AKIATEST',
    AWS_SECRET_ACCESS_KEY: 'test',
  };
  for (const [name, value] of Object.entries({
    ...environment,
    AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
  }))
    vi.stubEnv(name, value);
  aws.searches.splice(0);
  try {
    return await runOps([...words, '--stack', 'relay'], environment);
  } finally {
    vi.unstubAllEnvs();
  }
}

describe('request show', () => {
  it('searches the stack’s log groups around the id’s time, as far as a background run may last', async () => {
    aws.logLines.splice(0, 9, ...lines);
    const run = await ops('request', 'show', `chatcmpl-${id.slice(0, 12)}`);
    expect(run).toMatchObject({ code: 0, errors: '' });
    expect(run.output).toContain(
      'Next: the balance is too low: top up with npx --no relay-ops grant new acme AMOUNT',
    );
    expect(run.output).toMatch(/wanted +needed 2, free 0\.5/);
    expect(aws.searches).toEqual([
      {
        logGroupNames: expect.arrayContaining(['relay-FunctionschatLogs9F822A8D-AbCdEfGhIjKl']),
        startTime: at / 1000 - 31 * 60,
        endTime: at / 1000 + 31 * 60,
        queryString: `fields @timestamp, @message\n| filter request_id like /^${id.slice(0, 12)}/\n| sort @timestamp desc\n| limit 100`,
      },
    ]);
  });

  it('prints only data with --json', async () => {
    const run = await ops('request', 'show', id, '--json');
    expect(JSON.parse(run.output)).toMatchObject({
      id,
      next: expect.stringContaining('grant new'),
      log: { request: { code: 'insufficient_quota' } },
    });
  });

  it('does not report a charged call as free if its ledger row is missing', async () => {
    // A completed call logs its charge, but neither `reserved` nor `attempts`.
    const charged = { ...line, status: 200, outcome: 'completed', charge: '0.0468' };
    aws.logLines.splice(0, 9, charged);
    const run = await ops('request', 'show', id);
    expect(run.output).toContain('the ledger row is missing');
    expect(run.output).not.toContain('Not charged');

    const logged = { id, line: { atMs: at, fields: charged }, events: [] };
    expect(explainMissingRow(logged, at + 10_000)).toContain('not written yet');
    expect(explainMissingRow({ ...logged, line: { atMs: at, fields: line } }, at)).toContain('Not charged');
  });

  it('shows no more about a running background response than its log lines', async () => {
    aws.logLines.splice(0, 9, { message: 'background_accepted', request_id: id, account: 'acme' });
    const run = await ops('request', 'show', id);
    expect(run.output).toMatch(/logged +background_accepted/);
    expect(run.output).not.toMatch(/the key is unknown|answered/);
    aws.logLines.splice(0, 9, ...lines);
  });

  it('reports that several requests start with the given id', async () => {
    aws.logLines.unshift({ ...line, request_id: `${id.slice(0, 25)}z` });
    const run = await ops('request', 'show', id.slice(0, 12));
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('several requests match') });
  });

  it('shows the retention of log lines if none is found', async () => {
    aws.logLines.splice(0);
    const run = await ops('request', 'show', id);
    expect(run).toMatchObject({ code: 1 });
    expect(run.errors).toMatch(
      /no ledger row .*the log has no entry .*\d+ days ago\). Logs are kept for a month/,
    );
  });
});

describe('request list', () => {
  it('prints its search and the amount of read data to standard error', async () => {
    aws.logLines.splice(0, 9, ...lines);
    const run = await ops(
      'request',
      'list',
      '--account',
      'acme',
      '--since',
      '2d',
      '--status',
      'refused',
      '--json',
    );
    expect(run.errors).toMatch(
      // Four groups of 48 MB in 30 days; the search covers two.
      /Searching the log groups relay-FunctionschatLogs.*about 13 MB; .*\$0\.005 per GB/,
    );
    expect(JSON.parse(run.output)).toMatchObject([{ id, status: '429' }]);
    expect(run.errors).toContain('1 request; 0.01 MB scanned');
    expect(aws.searches[0]).toMatchObject({
      queryString: expect.stringContaining(
        'filter message in ["request"] and outcome in ["refused"] and account in ["acme"]',
      ),
    });
  });

  it('finds requests by end user and tags, and shows both', async () => {
    aws.logLines.splice(0, 9, {
      ...lines[0],
      end_user: 'alice',
      tags: { team: 'search', 'cost-center': 'a b' },
    });
    const words = ['--end-user', 'alice', '--tag', 'team=search,cost-center=a b'];
    const run = await ops('request', 'list', ...words, '--json');
    expect(aws.searches[0]).toMatchObject({
      queryString: expect.stringContaining(
        'and end_user in ["alice"] and tags.team in ["search"] and `tags.cost-center` in ["a b"]\n',
      ),
    });
    expect(JSON.parse(run.output)).toMatchObject([
      { end_user: 'alice', tags: 'cost-center=a b,team=search' },
    ]);
    expect((await ops('request', 'show', id)).output).toMatch(
      /for +end user alice, cost-center=a b,team=search/,
    );
    expect(await ops('request', 'list', '--tag', 'team')).toMatchObject({ code: 2 });
    // Stored in at most 64 characters.
    await ops('request', 'list', '--end-user', 'é'.repeat(70));
    expect(aws.searches.at(-1)).toMatchObject({
      queryString: expect.stringContaining(`and end_user in ["${'é'.repeat(64)}"]`),
    });
    expect(await ops('request', 'list', '--end-user', ' ')).toMatchObject({ code: 2 });
  });

  it('finds requests that took longer than a given time, even if that is usual', async () => {
    aws.logLines.splice(0, 9);
    await ops('request', 'list', '--slower-than', '1.5s');
    expect(aws.searches[0]).toMatchObject({
      queryString: expect.stringContaining('filter message in ["request"] and duration_ms > 1500\n'),
    });
    for (const words of [
      ['--slower-than', '5'],
      ['--slower-than', '5s', '--status', 'slow'],
      ['--limit', '-1'],
    ])
      expect(await ops('request', 'list', ...words)).toMatchObject({ code: 2 });
  });

  it.each([
    ['slow', 'FirstContentMs > 5000'],
    ['retried', 'retries > 0'],
  ])('finds requests that were %s, whatever their other outcomes', async (status, condition) => {
    await ops('request', 'list', '--status', status);
    expect(aws.searches[0]).toMatchObject({
      queryString: expect.stringContaining(`filter message in ["request"] and ${condition}\n`),
    });
  });

  it('finds a response by its id and the calls of a key by its hint, and prints no next step as JSON', async () => {
    await ops('request', 'list', '--status', '429', '--key', 'sk-AbCd...wXyZ', '--since', 'yesterday 14:05');
    expect(aws.searches[0]).toMatchObject({
      queryString: expect.stringContaining('and status = 429 and key_hint in ["sk-AbCd...wXyZ"]\n'),
    });
    expect(await ops('request', 'list', '--follow', '--json')).toMatchObject({ code: 2 });
  });

  it('never inserts a quote into a query', async () => {
    expect(await ops('request', 'list', '--model', 'a" or "')).toMatchObject({ code: 2 });
    expect(aws.searches).toEqual([]);
  });

  it.each([
    ['--limit', '10001'],
    ['--since', '2100-01-01T00:00:00Z'],
  ])('rejects %s %s, which the log cannot answer, before it prints a search', async (option, value) => {
    const run = await ops('request', 'list', option, value);
    expect(run).toMatchObject({ code: 2, errors: expect.stringMatching(`^${option}`) });
    expect(aws.searches).toEqual([]);
  });
});
