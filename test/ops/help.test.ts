import { PassThrough, Readable } from 'node:stream';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { composeCommandName, programName } from '../../infra/ops/cli/command.ts';
import { createProgram } from '../../infra/ops/cli/program.ts';
import { runOps } from './run-ops.ts';

const context = {
  input: Readable.from([]),
  output: new PassThrough(),
  errors: new PassThrough(),
  environment: {},
};

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);

const commands = leavesOf(createProgram(context));
const names = new Set(commands.map(composeCommandName));
const optionsOf = (command: Command): string[] => command.options.map(({ long }) => long ?? '');

describe('the help of each command', () => {
  it.each(commands.map((command) => composeCommandName(command)))(
    '%s has an example that the tool accepts, and refers only to existing commands',
    async (name) => {
      const { code, output } = await runOps([...name.split(' '), '--help']);
      expect(code).toBe(0);
      const examples = [...output.matchAll(/relay-ops (.+)$/gm)].map(([, words = '']) => words);
      const own = examples.filter((words) => words === name || words.startsWith(`${name} `));
      expect(own.length).toBeGreaterThan(0);
      expect(output).not.toMatch(/\(default: [^)]*\)\s+\(default: /);
      const referred = [...output.matchAll(/`([a-z-]+ [a-z]+)`/g)].map(([, words = '']) => words);
      expect(referred.filter((words) => !names.has(words))).toEqual([]);
      const command = commands.find((each) => composeCommandName(each) === name);
      const known = [...(command ? optionsOf(command) : []), '--stack', '--stage', '--profile'];
      expect(known).toEqual(
        expect.arrayContaining(own.flatMap((words) => words.match(/(?<=\s)--[a-z-]+/g) ?? [])),
      );
    },
  );
});

describe('the common options of all commands', () => {
  it('every command has --json and names its target; every list has --csv', () => {
    for (const command of commands)
      expect(optionsOf(command)).toEqual(expect.arrayContaining(['--json', '--region']));
    const lists = commands.filter((command) => / list$| total$/.test(composeCommandName(command)));
    expect(lists.length).toBeGreaterThan(5);
    for (const list of lists) expect(optionsOf(list)).toContain('--csv');
  });

  it('every command that asks has --yes and --dry-run', () => {
    const asking = commands.filter((command) => optionsOf(command).includes('--yes'));
    expect(asking.length).toBeGreaterThan(15);
    for (const command of asking) expect(optionsOf(command)).toContain('--dry-run');
  });
});

describe('a wrong command line', () => {
  it.each([
    [['chanel', 'list'], "unknown command 'chanel'\n(Did you mean channel?)"],
    [['account', 'show', 'acme'], "unknown command 'account'\n(Did you mean customer?)\n"],
    [['models'], "unknown command 'models'\n(Did you mean channel?)\n"],
    [['usage'], "unknown command 'usage'\n(Did you mean ledger?)\n"],
    [['channel', 'lst'], "unknown command 'lst'\n(Did you mean list?)"],
    [['plan', 'create'], 'Commands of plan: list, new, show, set, off\n'],
    [['grant', 'new', 'acme', '1', '--reson', 'x'], "unknown option '--reson'\n(Did you mean --reason?)"],
    [['grant', 'new', 'acme'], "missing required argument 'amount'"],
    [
      ['key', 'list', '--stage', 'test', '--stack', 'relay'],
      'use either --stage or --stack: --stage NAME means the stack relay-NAME',
    ],
  ])('%j prints a suggestion and exits with 2', async (words, reported) => {
    const { code, output, errors } = await runOps(words);
    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errors).toContain(reported);
  });

  it('with --json prints one object with the error on standard output', async () => {
    const { code, output } = await runOps('grant new acme --json');
    expect(code).toBe(2);
    expect(JSON.parse(output)).toEqual({
      error: { message: "error: missing required argument 'amount'", exit_code: 2 },
    });
  });
});

it('the help of the program explains exit codes and how to run it', async () => {
  const { output } = await runOps('--help');
  expect(output).toContain(`Usage: ${programName} `);
  expect(output).toMatch(/Exit codes: 0 success; 1 .*; 2 .*; 3 /s);
});
