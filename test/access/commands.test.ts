import { PassThrough, Readable } from 'node:stream';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { composeCommandName } from '../../infra/ops/cli/command.ts';
import { commandPolicies, createProgram } from '../../infra/ops/cli/program.ts';
import { policyAccess, policyNames, type PolicyName } from '../../infra/access/policies.ts';
import { synthesize } from '../infra/synthesize.ts';
import { startAccessRig, type AccessRig } from './access-rig.ts';
import { permissionsOf } from './policy-document.ts';
import { scenarios, wordsIn, type Scenario } from './scenarios.ts';
import { lostClose, seed } from './seed.ts';
import { idAt } from '../ops/ledger-rig.ts';
import { arnOf, policiesOf, region } from './template-policies.ts';

const policies = policiesOf(synthesize({}).template);
const handId = idAt('2026-11-10T16:00:00Z', 'hand');
let rig: AccessRig;
beforeAll(async () => {
  rig = await startAccessRig(policies);
  await seed(rig);
});
afterAll(async () => rig.stop());

/** Evaluated late: of several concurrent reads, some are denied only after the command has exited. */
const deniedTo = (name: string) => rig.enforcer.denied.filter(({ policy }) => policy === name);

const policiesOfCommand = (command: string): readonly PolicyName[] => commandPolicies[command] ?? [];

const run = (policy: PolicyName | 'nobody', scenario: Scenario) => {
  const { input = '', isLocal = false } = scenario;
  return rig.ops(policy, wordsIn(scenario, rig), { input, isLocal });
};

describe('every command with the credentials of a single policy', () => {
  it.each(scenarios.map((scenario, index) => [index, scenario.command, scenario] as const))(
    '%i: %s succeeds with each policy that the table lists, and is denied with any other',
    async (_index, command, scenario) => {
      await scenario.prepare?.(rig);
      const enough = policiesOfCommand(command);
      const others = policyNames.filter((name) => !enough.includes(name));
      for (const policy of [...others, 'nobody'] as const) {
        const { code, errors, output } = await run(policy, scenario);
        expect({ policy, code, errors, output }).toMatchObject({ policy, code: 3 });
        const named = `relay-${enough[0]}-${scenario.isLocal ? 'us-east-1' : region}`;
        expect(errors).toContain(named);
        expect(errors).toMatch(new RegExp(`(to run|Run) \`${command}\``));
        expect(deniedTo(policy).some(({ action }) => errors.includes(`denied ${action} on `))).toBe(true);
      }
      for (const policy of enough) {
        const { code, errors, output } = await run(policy, scenario);
        expect({ policy, denied: deniedTo(policy), code, errors, output }).toMatchObject({
          policy,
          denied: [],
          code: scenario.code ?? 0,
        });
      }
    },
  );

  it('denies an operator repairs of balances, explains why, and leaves the balance unchanged', async () => {
    await rig.ledger.reserve('acme', handId);
    const before = await rig.ledger.item('acme');
    const input = lostClose(handId);
    const { code, errors } = await rig.ops('operator', ['audit', '--repair', '-', '--wait', '0', '--yes'], {
      input,
    });
    expect(code).toBe(3);
    expect(errors).toContain(
      'AWS denied dynamodb:UpdateItem on table/relay-quotas: another policy forbids it',
    );
    expect(errors).toContain(`relay-repair-${region} and without relay-operator-${region}`);
    expect(await rig.ledger.item('acme')).toEqual(before);
    const repaired = await rig.ops('repair', ['audit', '--repair', '-', '--wait', '0', '--yes'], { input });
    expect(repaired.errors).toContain(`request ${handId}: settled`);
  });

  it('warns about a channel without calls if the policy may not check that the channel exists', async () => {
    const file = rig.config.file('nowhere.csv', 'model,amount\na,3\n');
    const words = ['reconcile', 'nowhere', file, '--month', '2026-11'];
    const repairing = await rig.ops('repair', words);
    expect(repairing).toMatchObject({ code: 0 });
    expect(repairing.errors).toContain(
      'channel nowhere had no calls in 2026-11: check the id with `channel list`',
    );
    expect(await rig.ops('support', words)).toMatchObject({ code: 2 });
  });

  it('records the AWS identity of the caller in the row that it writes', async () => {
    await rig.ops('operator', ['key', 'new', 'signed']);
    const row = await rig.ledger.row('accounts', { account: 'signed' });
    expect(row).toMatchObject({
      _by: 'arn:aws:iam::123456789012:user/AKIAOPERATOR',
      _at: expect.any(String),
    });
  });

  it('has a line in the table, and each line in the table has a scenario', () => {
    const program = createProgram({
      input: Readable.from([]),
      output: new PassThrough(),
      errors: new PassThrough(),
      environment: {},
    });
    expect(program).toBeInstanceOf(Command);
    const tabled = Object.keys(commandPolicies);
    expect(tabled.filter((name) => !name.includes('--')).toSorted()).toEqual(
      leavesOf(program).map(composeCommandName).toSorted(),
    );
    const shown = new Set(scenarios.map(({ command }) => command));
    expect(tabled.filter((name) => policiesOfCommand(name).length > 0 && !shown.has(name))).toEqual([]);
  });

  it('the commands together use every permission, except those meant for AWS’s own tools', () => {
    for (const name of policyNames) {
      const { statements } = policies.get(name) ?? { statements: [] };
      const given = statements.filter(({ Effect }) => Effect === 'Allow').flatMap(permissionsOf);
      const byHand = policyAccess[name].tables
        .filter(({ byHand: why }) => why !== undefined)
        .flatMap(({ tables, actions }) =>
          tables.flatMap((table) =>
            actions.map((action) => `dynamodb:${action} ${arnOf('dynamodb', `table/relay-${table}`)}`),
          ),
        );
      const used = rig.enforcer.used.get(name) ?? new Set();
      expect({ name, unused: given.filter((each) => !used.has(each)).toSorted() }).toEqual({
        name,
        unused: byHand.toSorted(),
      });
    }
  });
});

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
