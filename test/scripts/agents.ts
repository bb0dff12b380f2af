/**
 * Runs tasks of six tool turns in the real Codex CLI and opencode on OpenAI (Responses), Claude, Gemini and DeepSeek, as
 * doubles of infra/local/vendors behind the running local stack, and lets Codex compact a session twice on each. Prints
 * the requests at each vendor, and fails if a vendor objected, if a state got lost or if the files differ from the expected
 * ones. Not part of `npm test`: it installs both programs (some 600 MB) from npm, unless a folder has them.
 *
 *   npm run build && npm run app && node test/scripts/agents.ts [folder with the programs in node_modules]
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startVendorStack, type ServedModel } from '../vendors/vendor-stack.ts';
import { runCodex, runOpencode, type AgentRun } from './agent-programs.ts';
import { sessionFacts } from './agent-requests.ts';

/** Codex gives a patch tool to models that it knows, here by the end of their names, and functions alone to others. */
const known = '/gpt-5.5';
const vendors: ServedModel[] = [
  {
    model: 'agent-gpt',
    vendor: 'openai',
    upstream: 'gpt-5.6',
    row: { type: 'openai', dialect: 'responses' },
  },
  { model: 'agent-claude', vendor: 'anthropic', upstream: 'claude-opus-5-5', row: { type: 'anthropic' } },
  { model: 'agent-gemini', vendor: 'gemini', upstream: 'gemini-3-pro-preview', row: { type: 'gemini' } },
  { model: 'agent-deepseek', vendor: 'deepseek', upstream: 'deepseek-v4-pro', row: { type: 'openai' } },
];

/** The doubles call what the lines of the text name (`script/words.ts`). */
const task = (calls: [tool: string, input: unknown][]): string =>
  ['Make the files.', ...calls.map(([tool, input]) => `call ${tool} ${JSON.stringify(input)}`)].join('\n');
const patch = '*** Begin Patch\n*** Add File: made.txt\n+made by an edit\n*** End Patch';

const codexTask = (edit: [string, unknown]): string =>
  task([
    ['exec_command', { cmd: 'echo one > lines.txt; cat lines.txt' }],
    ['exec_command', { cmd: 'echo two >> lines.txt; cat lines.txt' }],
    edit,
    ['exec_command', { cmd: 'cat made.txt' }],
    ['exec_command', { cmd: 'pwd' }],
    ['exec_command', { cmd: 'wc -l lines.txt' }],
  ]);
const opencodeTask = (home: string): string => {
  const filePath = path.join(home, 'made.txt');
  return task([
    ['bash', { command: 'echo one > lines.txt; cat lines.txt', description: 'Makes a file' }],
    ['bash', { command: 'echo two >> lines.txt; cat lines.txt', description: 'Adds a line' }],
    ['write', { filePath, content: 'made by a write\n' }],
    ['read', { filePath }],
    ['edit', { filePath, oldString: 'a write', newString: 'an edit' }],
    ['bash', { command: 'cat made.txt', description: 'Shows the file' }],
  ]);
};
/** Answers of some 3,500 tokens, so that Codex has to compact before the task ends. */
const longTask = task(
  Array.from({ length: 8 }, (_, step) => [
    'exec_command',
    { cmd: `echo step ${step} >> steps.txt; seq 1 3000` },
  ]),
);
const compactAt = 15_000;

interface Session {
  name: string;
  served: ServedModel;
  run: (run: AgentRun) => Promise<unknown>;
  wanted: 'files' | 'compactions';
}

const sessions: Session[] = vendors.flatMap((served) => [
  {
    name: 'Codex, functions',
    served,
    wanted: 'files' as const,
    run: (run) =>
      runCodex({ ...run, said: codexTask(['exec_command', { cmd: `apply_patch <<'EOF'\n${patch}\nEOF` }]) }),
  },
  {
    name: 'Codex, custom patch tool',
    served: { ...served, model: served.model + known },
    wanted: 'files' as const,
    run: (run) => runCodex({ ...run, said: codexTask(['apply_patch', patch]) }),
  },
  {
    name: 'opencode',
    served,
    wanted: 'files' as const,
    run: (run) => runOpencode({ ...run, said: opencodeTask(run.home) }),
  },
  ...['Relay', 'OpenAI'].map((provider): Session => ({
    name: `Codex, compacting, with a provider named ${provider}`,
    served,
    wanted: 'compactions',
    run: async (run) => {
      await runCodex({ ...run, said: longTask }, { compactAt, provider });
      await runCodex({ ...run, said: longTask }, { compactAt, provider, resumes: true });
    },
  })),
]);

const folder = await mkdtemp(path.join(os.tmpdir(), 'relay-agents-'));
const programs = process.argv[2] ?? folder;
const more = vendors.map((served) => ({ ...served, model: served.model + known }));
const stack = await startVendorStack([...vendors, ...more]);

/** Prints the observations. Returns whether the session succeeded. */
async function succeeds({ name, served, run, wanted }: Session, place: number): Promise<boolean> {
  const { model, vendor } = served;
  const home = path.join(folder, `home-${place}`);
  await mkdir(home);
  const before = stack.vendors.requests(vendor).length;
  await run({ programs, home, baseUrl: stack.baseUrl, key: stack.key, model, said: '' });
  const seen = sessionFacts(stack.vendors.requests(vendor).slice(before));
  const read = (file: string): Promise<string> => readFile(path.join(home, file), 'utf8').catch(() => '');
  const made = [await read('lines.txt'), await read('made.txt')].join('');
  console.log(JSON.stringify({ name, model, ...seen, made }));
  const isWhole = seen.objections.length === 0 && seen.statesBack === seen.toolTurns;
  if (wanted === 'compactions') return isWhole && seen.compactions >= 2;
  return isWhole && seen.toolTurns === 6 && made === 'one\ntwo\nmade by an edit\n';
}

const failed: string[] = [];
try {
  if (programs === folder)
    await promisify(execFile)('npm', ['install', '--prefix', folder, '@openai/codex', 'opencode-ai']);
  for (const [place, session] of sessions.entries())
    if (!(await succeeds(session, place))) failed.push(`${session.name}, ${session.served.model}`);
} finally {
  await stack.stop();
  await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 200 });
}
if (failed.length > 0) throw new Error(`failed: ${failed.join('; ')}`);
