/**
 * Lets the real Codex CLI do a task with its shell and its patch tool, against the running local stack and a
 * scripted upstream. Not part of `npm test`: it installs Codex (some 200 MB) from npm into a temporary folder.
 *
 *   npm run build && npm run app && node test/scripts/codex.ts [version of Codex]
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { models, startClientStack } from '../client/client-stack.ts';
import { fencesOf } from '../docs/pages.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { textStream, toolCallStream } from '../support/upstream-scripts.ts';

/** Codex gives functions to models that it does not know, functions and custom tools to some, only code to others. */
const names = [models.scripted, 'gpt-5.5', 'gpt-6.1-sol'];
const command = 'echo made by a shell > shell.txt; cat shell.txt';
const patch = '*** Begin Patch\n*** Add File: patch.txt\n+made by a patch\n*** End Patch';
const code = `text(JSON.stringify(await tools.exec_command({ cmd: ${JSON.stringify(command)} })));`;

/** One tool after the other, as far as the model has them; then what the last one said. */
const task: Script = (call, reply) => {
  const messages = call.body['messages'] as { role: string; content: string }[];
  const tools = (call.body['tools'] ?? []) as { function: { name: string } }[];
  const steps = [
    { tool: 'exec_command', input: { cmd: command } },
    { tool: 'functions__exec', input: { input: code } },
    { tool: 'apply_patch', input: { input: patch } },
  ].filter(({ tool }) => tools.some((one) => one.function.name === tool));
  const results = messages.filter(({ role }) => role === 'tool');
  const next = steps[results.length];
  const script = next
    ? toolCallStream(next.tool, next.input, `call_${results.length}`)
    : textStream(`Done after ${results.length} results.`);
  return script(call, reply);
};

/** The configuration that docs/codex.md shows, for this stack and model. */
function configOf(baseUrl: string, model: string): string {
  const fence = fencesOf('docs/codex.md').find(({ language }) => language === 'toml');
  return String(fence?.code)
    .replace(/base_url = ".*"/, `base_url = "${baseUrl}"`)
    .replace(/^model = ".*"/m, `model = "${model}"`);
}

async function runCodex(program: string, home: string, key: string): Promise<string> {
  const flags = ['exec', '--skip-git-repo-check', '--sandbox', 'danger-full-access', '-C', home];
  const child = spawn(program, [...flags, 'Make the files.'], {
    env: { PATH: process.env['PATH'], HOME: home, CODEX_HOME: home, RELAY_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
  });
  const [said, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (status !== 0) throw new Error(`Codex ended with ${status}: ${said}`);
  return said.trim();
}

async function readMade(home: string, file: string): Promise<string | undefined> {
  return readFile(path.join(home, file), 'utf8').catch(() => undefined);
}

const folder = await mkdtemp(path.join(os.tmpdir(), 'relay-codex-'));
const stack = await startClientStack({ moreModels: names });
try {
  const version = process.argv[2] ?? '0.169.0';
  await promisify(execFile)('npm', ['install', '--prefix', folder, `@openai/codex@${version}`]);
  stack.upstream.script(task);
  for (const model of names) {
    const home = path.join(folder, model);
    await mkdir(home);
    await writeFile(path.join(home, 'config.toml'), configOf(stack.baseUrl, model));
    const said = await runCodex(path.join(folder, 'node_modules/.bin/codex'), home, stack.key);
    const made = [await readMade(home, 'shell.txt'), await readMade(home, 'patch.txt')];
    console.log(JSON.stringify({ model, said, made }));
    const patched = model === 'gpt-5.5' ? 'made by a patch\n' : undefined;
    if (made[0] !== 'made by a shell\n' || made[1] !== patched) throw new Error(`Codex failed with ${model}`);
  }
} finally {
  await stack.stop();
  await rm(folder, { recursive: true });
}
