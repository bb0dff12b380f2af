import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commandPolicies } from '../../infra/ops/cli/program.ts';
import { runOps } from './run-ops.ts';

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
const pages =
  'README.md AGENTS.md docs/tables.md docs/operate.md docs/deploy.md docs/billing.md docs/payments.md docs/observability.md docs/add-an-upstream-type.md docs/daily-tasks.md docs/channels.md docs/tables.md docs/local.md docs/first-deployment.md docs/console.md docs/account-page.md'.split(
    ' ',
  );

/** Splits `npx --no relay-ops key list --stack relay` into words; `...` means any command. */
const documented = pages
  .flatMap((page) =>
    Array.from(read(page).matchAll(/npx --no relay-ops ([^`\n]+)/g), ([, words = '']) => words),
  )
  .map((words) => words.trim())
  .filter((command) => !command.endsWith('...'));

/** Commands without a group. */
const lone = new Set(['help', ...Object.keys(commandPolicies).filter((name) => !name.includes(' '))]);

/** The words that name the command. */
function commandOf(line: string): string {
  const words = line.split(/\s+/);
  return words.slice(0, lone.has(words[0] ?? '') ? 1 : 2).join(' ');
}

describe('every command of the tool in the docs', () => {
  it('starts with its name, because npx consumes earlier options', async () => {
    expect(documented.filter((command) => command.startsWith('-'))).toEqual([]);
    expect((await runOps('help')).output).toContain('Usage: npx --no relay-ops <command> [options]\n');
  });

  it('exists, with every given option', async () => {
    const commands = Map.groupBy(documented, commandOf);
    commands.delete('help');
    expect(commands.size).toBeGreaterThan(15);
    for (const [command, lines] of commands) {
      const help = await runOps([...command.split(' '), '--help']);
      expect(help).toMatchObject({ code: 0 });
      expect(help.output).toContain(`Usage: npx --no relay-ops ${command} `);
      const options = lines.flatMap((line) => line.match(/(?<=\s)--[a-z-]+/g) ?? []);
      for (const option of options.filter((each) => !['--stack', '--stage', '--profile'].includes(each))) {
        expect(help.output).toMatch(new RegExp(`${option}\\b`));
      }
    }
  });
});

describe('every noun with a verb, between backquotes or for the next step, is a command', () => {
  const names = new Set(Object.keys(commandPolicies));
  const nouns = new Set([...names].flatMap((name) => (name.includes(' ') ? [name.split(' ')[0]] : [])));
  const isProse = new Set(['request bodies', 'ledger rows', 'channel main', 'payment of', 'request id']);
  const files = execFileSync('git', ['ls-files', 'docs/*.md', '*.md', 'infra', 'shared'], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => /\.(md|ts)$/.test(file) && !/CHANGELOG|decisions\//.test(file));

  it('and no text uses a removed noun or another name of the program', () => {
    const texts = [...files, 'docs/CHANGELOG.md'].flatMap((file) =>
      (
        read(file).match(/[`>](?:account (?:list|show|plan|grant)|(?:key|channel) create|ops [a-z-]+)\b/g) ??
        []
      ).map((found) => `${file}: ${found}`),
    );
    expect(texts).toEqual([]);
  });

  it('in pages, messages and help', () => {
    expect(files.length).toBeGreaterThan(300);
    const unknown = files.flatMap((file) =>
      [
        ...read(file).matchAll(/(?:`|[ (]<)(?:relay-ops )?([a-z-]+)\s+([a-z]+(?:-[a-z]+)*)(?=[\s`\\>])/g),
      ].flatMap(([, noun = '', verb = '']) =>
        nouns.has(noun) && !names.has(`${noun} ${verb}`) && !isProse.has(`${noun} ${verb}`)
          ? [`${file}: ${noun} ${verb}`]
          : [],
      ),
    );
    expect(unknown).toEqual([]);
  });
});
