/** Runs `npm run first-deployment` on test protocols with a real shell: what it refuses, records, skips and resumes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSteps, runProtocol } from '../../infra/deploy/protocol.ts';
import { readPage, root } from '../docs/pages.ts';

let folder: string;
let printed: string[];
let isDeployed: boolean;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-protocol-'));
  mkdirSync(join(folder, 'docs'));
  write('relay.try.json', '{"disposable": true}');
  printed = [];
  isDeployed = false;
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const write = (file: string, text: string): void => {
  writeFileSync(join(folder, file), text);
};
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const transcript = (): string => read('first-deployment/try/transcript.md');
const block = (code: string, language = 'sh'): string => `\`\`\`${language}\n${code}\n\`\`\`\n\n`;

/** @param steps the blocks of each, and the expected exit codes */
function protocol(...steps: [blocks: string, exits?: string][]): void {
  const sections = steps.map(
    ([blocks, exits = '0'], index) =>
      `### ${index + 1}. Step ${index + 1}\n\nExpected: exit ${exits}, 5 minutes. Note: what\nto note.\n\n${blocks}`,
  );
  write('docs/first-deployment.md', `It costs little.\n\n${sections.join('')}## Later\n\n${block('exit 9')}`);
}

const run = (given: { stage?: string; from?: string; yes?: boolean } = {}): Promise<number> =>
  runProtocol(
    { stage: 'try', yes: true, ...given },
    {
      folder,
      environment: { PATH: process.env['PATH'], UPSTREAM_API_KEY: 'upstream/0123456789' },
      print: (line) => printed.push(line),
      isDeployed: async () => isDeployed,
    },
  );

describe('a first deployment', () => {
  it('runs nothing on a protected stage, the default stage, or a stage that others use', async () => {
    protocol([block('touch ran')]);
    write('relay.json', '{"disposable": true}');
    write('relay.kept.json', '{"alarmEmail": "ops@example.com"}');
    await expect(runProtocol({ yes: true }, {} as never)).rejects.toThrow(
      '--stage is required: do not use the default stage for trials',
    );
    await expect(run({ stage: 'kept' })).rejects.toThrow(
      'relay.kept.json lacks "disposable": true, and the last step deletes stack',
    );
    await expect(run({ stage: 'none' })).rejects.toThrow('relay.none.json does not exist');
    isDeployed = true;
    await expect(run()).rejects.toThrow(
      'stack relay-try already exists and was not created by this protocol: choose an unused stage',
    );
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('shows its steps, duration and cost, and runs them only with --yes', async () => {
    protocol([block('touch ran')], [block('touch ran')]);
    await expect(run({ yes: false })).rejects.toThrow('npm run first-deployment -- --stage try --yes');
    expect(printed).toContain('2. Step 2: about 5 minutes');
    expect(printed.at(-1)).toBe('stack relay-try: about 10 minutes. It costs little.');
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('records options and output, with the stage as a variable', async () => {
    const code = 'echo "$STAGE in $RUN"; echo bad >&2; exit 3';
    protocol([block('{"logRetentionDays": 60}', 'json') + block(code), '1 or 3']);
    expect(await run()).toBe(0);
    expect(JSON.parse(read('relay.try.json'))).toEqual({ disposable: true, logRetentionDays: 60 });
    for (const line of ['try in first-deployment/try', 'bad', 'exit 3']) expect(transcript()).toContain(line);
    expect(printed).toContain('bad');
    expect(transcript()).toContain('To note: what to note.');
    expect(transcript()).toContain('**Step 1 done** in 0.0 minutes (expected 5).');
  });

  it('stops at an unexpected exit code, and resumes there when it is repeated', async () => {
    protocol([block('echo once')], [block('test -f mended\necho never')], [block('echo last')]);
    expect(await run()).toBe(1);
    expect(printed).toContainEqual(
      expect.stringMatching(/^step 2 \(Step 2\) failed: block 1 ended with 1, expected 0/),
    );
    expect(printed.at(-1)).toBe(
      'to delete the stack: npm run first-deployment -- --stage try --yes --from last',
    );
    expect(transcript()).toContain('**Step 2 failed**');
    write('mended', '');
    expect(await run()).toBe(0);
    expect(transcript().match(/^(once|never|last)$/gm)).toEqual(['once', 'never', 'last']);
    await expect(run()).rejects.toThrow('all steps are done; to start over, move');
    await expect(run({ from: 'lst' })).rejects.toThrow('no step lst');
    expect(await run({ from: 'last' })).toBe(0);
    expect(transcript().match(/^(once|never|last)$/gm)).toEqual(['once', 'never', 'last', 'last']);
  });

  it('skips steps that need CloudFront if an API is the front door', async () => {
    protocol([block('echo distribution')], [block('echo everywhere')]);
    write(
      'docs/first-deployment.md',
      read('docs/first-deployment.md').replace('5 minutes.', '5 minutes, with CloudFront.'),
    );
    write('relay.try.json', '{"disposable": true, "frontDoor": "api"}');
    expect(await run()).toBe(0);
    expect(transcript().match(/^(distribution|everywhere)$/gm)).toEqual(['everywhere']);
    write('relay.try.json', '{"disposable": true}');
    expect(await run()).toBe(0);
    expect(transcript().match(/^(distribution|everywhere)$/gm)).toEqual(['everywhere', 'distribution']);
  });

  it('that is killed keeps the output of the block so far, and resumes at its step', async () => {
    const heard = 'until grep -q "^so far" $RUN/transcript.md; do sleep 0.1; done';
    protocol([block(`echo "so far"\ntest -f mended && exit\n${heard}\nkill -9 $PPID`)]);
    const program = `import { runProtocol } from ${JSON.stringify(join(root, 'infra/deploy/protocol.ts'))};
      const ports = { environment: process.env, print() {}, isDeployed: async () => false };
      await runProtocol({ stage: 'try', yes: true }, { folder: ${JSON.stringify(folder)}, ...ports });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
    expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
    expect(transcript()).toMatch(/so far\n$/);
    write('mended', '');
    expect(await run()).toBe(0);
    expect(transcript()).toContain('so far\n````\n\nThat run ended here.');
    expect(transcript().match(/^````/gm)?.length).toBe(8);
  });

  it('records no key, no secret of the environment, no mail address and no account number', async () => {
    const said = 'sk-relay-0123456789abcdefghij of arn:aws:iam::123456789012:root';
    protocol([block(`echo "${said} to ops@example.com by $UPSTREAM_API_KEY with aws-cdk@2.1148.1"`)]);
    await run();
    const shown = 'sk-rela...ghij of arn:aws:iam::(account):root to (mail) by (secret) with aws-cdk@2.1148.1';
    expect(printed).toContain(shown);
    expect(transcript()).toContain(`\n${shown}\n`);
    expect(transcript()).not.toContain('upstream/0123456789');
  });

  it('omits the middle of a long output', async () => {
    protocol([block('i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "line $i"; done')]);
    await run();
    expect(transcript()).toMatch(/line 150\n\.\.\. 100 lines are left out \.\.\.\nline 251\n/);
    expect(printed).toContain('line 200');
  });
});

describe('the page of the first deployment', () => {
  const page = readPage('docs/first-deployment.md');
  const steps = readSteps(page);

  it('lists its steps in order, each with blocks, and ends with the removal', () => {
    expect(steps.map(({ number }) => number)).toEqual(steps.map((_, index) => index + 1));
    for (const { blocks, minutes } of steps) {
      expect(blocks.length).toBeGreaterThan(0);
      expect(minutes).toBeGreaterThan(0);
    }
    expect(steps.at(-1)?.blocks[0]?.code).toContain('npx cdk destroy -c stage=$STAGE');
  });

  it('uses only its own stage', () => {
    const lines = steps.flatMap(({ blocks }) => blocks.flatMap(({ code }) => code.split('\n')));
    const ofStacks = lines.filter((line) => /relay-ops |npm run deploy|cdk destroy|table-name/.test(line));
    expect(ofStacks.filter((line) => !line.includes('$STAGE'))).toEqual([]);
  });
});
