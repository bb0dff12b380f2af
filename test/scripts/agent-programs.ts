import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fencesOf } from '../docs/pages.ts';

/** One run of a program. Its home is also its working folder. */
export interface AgentRun {
  /** The folder with the programs in `node_modules`. */
  programs: string;
  home: string;
  baseUrl: string;
  key: string;
  model: string;
  /** The user's prompt. */
  said: string;
}

interface CodexSession {
  /** The number of tokens at which it compacts. */
  compactAt?: number;
  /** The provider's name: at one named `OpenAI` the server compacts. */
  provider?: string;
  resumes?: boolean;
}

/** Codex as docs/codex.md configures it. */
export async function runCodex(
  run: AgentRun,
  { compactAt, provider = 'Relay', resumes }: CodexSession = {},
): Promise<string> {
  const limits = `model_context_window = 60000\nmodel_auto_compact_token_limit = ${compactAt}\n`;
  const config = documented('toml')
    .replace(/base_url = ".*"/, `base_url = "${run.baseUrl}"`)
    .replace(/^model = ".*"/m, `model = "${run.model}"`)
    .replace('name = "Relay"', `name = "${provider}"`);
  await writeFile(path.join(run.home, 'config.toml'), (compactAt === undefined ? '' : limits) + config);
  const session = resumes ? ['resume', '--last'] : ['-C', run.home];
  return start(run, 'codex', [
    'exec',
    '-c',
    'sandbox_mode="danger-full-access"',
    ...session,
    '--skip-git-repo-check',
    '-',
  ]);
}

/** opencode as docs/codex.md configures it. */
export async function runOpencode(run: AgentRun): Promise<string> {
  const config = documented('json')
    .replace(/"baseURL": "[^"]*"/, `"baseURL": "${run.baseUrl}"`)
    .replaceAll('demo-chat', run.model);
  await writeFile(path.join(run.home, 'opencode.json'), config);
  return start(run, 'opencode', ['run']);
}

function documented(language: string): string {
  const fence = fencesOf('docs/codex.md').find((one) => one.language === language);
  if (!fence) throw new Error(`docs/codex.md has no ${language}`);
  return fence.code;
}

/** The text goes to standard input, because opencode quotes arguments. */
async function start(
  { programs, home, key, said }: AgentRun,
  name: string,
  flags: string[],
): Promise<string> {
  const child = spawn(path.join(programs, 'node_modules/.bin', name), flags, {
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home, CODEX_HOME: home, RELAY_KEY: key },
    timeout: 120_000,
  });
  child.stdin.end(said);
  const [output, errors, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${(output + errors).slice(-2000)}`);
  return output;
}
