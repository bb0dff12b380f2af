import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandPolicies } from '../../infra/ops/cli/program.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { synthesize } from '../infra/synthesize.ts';
import { startPipedTool, type PipedRun, type PipedTool } from '../ops/piped-tool.ts';
import { startAccessRig, type AccessRig } from './access-rig.ts';
import { outputNames, type PrintedRun } from './output-names.ts';
import { scenarios, wordsIn, type Scenario } from './scenarios.ts';
import { seed } from './seed.ts';
import { policiesOf } from './template-policies.ts';

const clientKey = `sk-${'Canary0'.repeat(7).slice(0, 48)}`;
const vendorKey = 'sk-proj-canary-vendor-0123456789abcdef';
const webhookSecret = 'whsec_canary0123456789abcdef';
const originSecret = 'canary-origin-secret-0123456789';
const secrets = [clientKey, vendorKey, webhookSecret, originSecret, 'links-secret'];

let rig: AccessRig;
let empty: Emulator;
let tool: PipedTool;
beforeAll(async () => {
  [rig, empty] = await Promise.all([startAccessRig(policiesOf(synthesize({}).template)), startEmulator()]);
  await seed(rig);
  await plantSecrets();
  tool = startPipedTool();
  // The rig starts before the first command is timed.
  await tool.run({ words: ['help'], environment: {}, aws: {}, input: '' });
}, 120_000);
afterAll(async () => Promise.all([tool.stop(), rig.stop(), empty.stop()]));

/** Puts secrets where people enter them by mistake: rows and notes of every table that they edit. */
async function plantSecrets(): Promise<void> {
  const { ledger, aws } = rig;
  const rule = { id: 40, type: 'token-billing', models: ['m'], input: 0.001, output: 0.002 };
  const channel = { endpoint: 'https://a.example.com/v1', models: ['m'], state: true };
  const key = { account: 'acme' };
  await ledger.put(
    'keys',
    { ...key, hash: clientKey, enabled: true },
    { ...key, hash: 'c'.repeat(64), hint: clientKey, _note: clientKey },
    { ...key, hash: 'd'.repeat(64), secret: originSecret, kept: webhookSecret },
  );
  await ledger.put(
    'channels',
    { ...channel, id: 'raw', secret: vendorKey },
    { ...channel, id: 'noted', _note: originSecret },
    { ...channel, id: 'odd', endpoint: `https://a.example.com/v1?key=${originSecret}` },
  );
  await ledger.put('charges', { ...rule, secret: originSecret });
  await ledger.put(
    'settings',
    { name: 'alerts', value: { webhook: { secret: webhookSecret } } },
    { name: 'contact', value: { key: originSecret } },
  );
  await ledger.put('accounts', { account: 'noted', _note: clientKey, webhook: webhookSecret });
  await ledger.put('plans', { level: 3, secret: originSecret });
  await ledger.put('grants', { account: 'acme', grant_id: 'noted', amount: originSecret, reason: clientKey });
  aws.stored.set('secret relay/origin', originSecret);
}

type State = 'ok' | 'empty' | 'refused' | 'failed';
type Form = 'text' | 'json' | 'csv';

const lists = new Set(
  'customer list,key use,key list,channel list,charge list,plan list,setting list,grant list,payment list,ledger list,ledger total,statement,reconcile,check,doctor,audit,response total,request list,report,version list,version diff'.split(
    ',',
  ),
);

function wordsOf(scenario: Scenario, state: State): string[] {
  const words = wordsIn(scenario, rig).filter((word) => word !== '--csv');
  if (scenario.command === 'config export') words.push('--skip-bad');
  if (state !== 'refused') return words;
  return words.includes('--yes') ? words.filter((word) => word !== '--yes') : [...words, '--nonsense'];
}

async function run(scenario: Scenario, state: State, form: Form): Promise<PipedRun> {
  const { command, input = '', isLocal = false } = scenario;
  const words = [...wordsOf(scenario, state), ...(form === 'text' ? [] : [`--${form}`])];
  if (state === 'empty' || state === 'failed') {
    const endpoint = state === 'empty' ? empty.endpoint : 'http://127.0.0.1:1';
    const environment = { AWS_ENDPOINT_URL_DYNAMODB: endpoint };
    return tool.run({ words, environment, aws: environment, input });
  }
  const [policy = 'nobody'] = commandPolicies[command] ?? [];
  const { account, tables } = rig.environmentOf(policy);
  const endpoint = { AWS_ENDPOINT_URL_DYNAMODB: tables };
  const aws = { ...account, ...endpoint };
  if (isLocal)
    return tool.run({
      words,
      environment: { ...endpoint, UPSTREAM_KEY: 'sk-upstream', RELAY_ENV_SECRETS: 'UPSTREAM_KEY' },
      aws,
      input,
    });
  return tool.run({ words: [...words, '--stack', 'relay'], environment: account, aws, input });
}

/** Ordered so that no run needs what an earlier one wrote. Errors are not tables, so they have one form. */
const ways: [State, Form][] = [
  ['failed', 'json'],
  ['empty', 'json'],
  ['empty', 'csv'],
  ['refused', 'json'],
  ['ok', 'json'],
  ['ok', 'csv'],
  ['ok', 'text'],
];

describe('standard output to a pipe', () => {
  const printed: PrintedRun[] = [];
  const whole = new Set<number>();

  it.each(scenarios.map((scenario, index) => [index, scenario.command, scenario] as const))(
    '%i: of %s is one JSON value or CSV in every state, and holds no secret in any form',
    async (index, command, scenario) => {
      await scenario.prepare?.(rig);
      for (const [state, form] of ways) {
        if (form === 'csv' && !lists.has(command)) continue;
        const { code, output, errors } = await run(scenario, state, form);
        const reported = { state, form, code, output, errors };
        printed.push({ command, state, form, code, output });
        if (state === 'refused') expect(reported).toMatchObject({ code: 2 });
        // Doctor reports for each check that it cannot read the data.
        if (state === 'failed' && command !== 'doctor') expect(reported).not.toMatchObject({ code: 0 });
        if (form === 'json')
          expect({ ...reported, value: valueOf(reported, scenario) }).toMatchObject(reported);
        if (form === 'csv') parse(output, { columns: true });
        const leaked = secrets.filter((secret) => (output + errors).includes(secret));
        expect({ ...reported, leaked }).toMatchObject({ leaked: [] });
      }
      whole.add(index);
    },
  );

  // After an intended change: `npm test -- test/access/forms.test.ts -u`. test/compatibility compares the file with the last release.
  it('has the fields, columns and exit codes of outputs.golden.json', async ({ skip }) => {
    if (whole.size < scenarios.length) skip();
    const names = JSON.stringify(outputNames(printed), null, 2);
    await expect(`${names}\n`).toMatchFileSnapshot('outputs.golden.json');
  });
});

/** Throws unless the output is one value, which is an error exactly if the command failed. */
function valueOf(
  { state, code, output }: PipedRun & { state: State },
  { code: wanted = 0 }: Scenario,
): unknown {
  const value: unknown = JSON.parse(output);
  const error = { error: { message: expect.any(String), exit_code: code } };
  if (state === 'refused' || (state === 'failed' && code > 0)) expect(value).toEqual(error);
  else if (state === 'ok' && wanted === 0) expect(value).not.toHaveProperty('error');
  return value;
}
