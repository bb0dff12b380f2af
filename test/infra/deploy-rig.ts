/** A fresh clone with a loopback AWS, which runs the commands of the docs as a newcomer types them. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { LoopbackAws } from './loopback/aws.ts';
import { EmulatedTables } from './loopback/tables.ts';
import { runProgram, type Ended } from './run-program.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';

const projectFolder = resolve(import.meta.dirname, '..', '..');
const notCopied = new Set(['node_modules', 'dist', 'cdk.out', '.git', '.relay', 'coverage']);

export class DeployRig {
  readonly folder: string;
  readonly aws: LoopbackAws;
  readonly tables: EmulatedTables;
  readonly #emulator: Emulator;
  #endpoint = '';

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
    this.tables = new EmulatedTables(emulator.endpoint);
    this.aws = new LoopbackAws(this.tables);
    this.folder = mkdtempSync(join(tmpdir(), 'relay-deploy-'));
  }

  static async start(): Promise<DeployRig> {
    const rig = new DeployRig(await startEmulator());
    await rig.tables.follow([]);
    const copied = (source: string) => !notCopied.has(source.slice(projectFolder.length + 1));
    cpSync(projectFolder, rig.folder, { recursive: true, filter: copied });
    symlinkSync(join(projectFolder, 'node_modules'), join(rig.folder, 'node_modules'));
    rig.#endpoint = await rig.aws.listen();
    return rig;
  }

  async stop(): Promise<void> {
    this.tables.close();
    await Promise.all([this.aws.close(), this.#emulator.stop()]);
    rmSync(this.folder, { recursive: true });
  }

  get endpoint(): string {
    return this.#endpoint;
  }

  /** Writes the options file of a stage: `relay.json`. */
  options(file: string, options: object): void {
    writeFileSync(join(this.folder, file), JSON.stringify(options));
  }

  /** Programs of a test, which take precedence over the machine's. */
  get programs(): string {
    return join(this.folder, '.programs');
  }

  /** Runs a command line in a shell without this process's variables, Node and tools. */
  async run(line: string, variables: Record<string, string> = {}, timeout?: number): Promise<Ended> {
    const env = {
      PATH: [this.programs, pathOfTerminal()].join(delimiter),
      HOME: this.folder,
      AWS_ENDPOINT_URL: this.#endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'AKIALOOPBACK',
      AWS_SECRET_ACCESS_KEY: 'loopback',
      AWS_EC2_METADATA_DISABLED: 'true',
      npm_config_update_notifier: 'false',
      // CloudFormation's rules and cdk-nag take most of a synthesis, and have their own test.
      CDK_VALIDATION: 'false',
      ...variables,
    };
    return runProgram('sh', ['-c', line], {
      cwd: this.folder,
      env,
      ...(timeout !== undefined && { timeout }),
    });
  }
}

/** The PATH without the repository's own tools: the machine's Node comes first, as in a fresh terminal. */
function pathOfTerminal(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.filter((folder) => !folder.includes('node_modules')).join(delimiter);
}
