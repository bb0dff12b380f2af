/**
 * An adopter's CDK app: a folder outside the repository, with the package installed from its tarball, and CDK and the compiler
 * next to it. No registry can be reached.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makePackage, type PackedPackage } from '../../infra/build/package.ts';
import { root } from '../docs/pages.ts';
import { runProgram } from './run-program.ts';
import type { Template } from './synthesize.ts';

const modules = path.join(root, 'node_modules');

const peers = ['aws-cdk-lib', 'constructs', 'typescript'].map((name) => path.join(modules, name));

export interface SynthesizedStack {
  /** `beta-models-us-east-1`. */
  name: string;
  region: string;
  template: Template;
  /** Folders and files that a deployment uploads. */
  assets: string[];
}

export class AdopterApp {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'relay-adopter-'));
  readonly packed: PackedPackage;

  /** @param packed the tarball of another app. Default: pack a new one. */
  constructor(packed?: PackedPackage) {
    this.packed = packed ?? makePackage({ outputFolder: this.folder });
  }

  /** Installs the tarball as npm does, then adds the peer packages as folders, as an adopter's app has them. */
  async install(beside = peers): Promise<void> {
    this.write('package.json', JSON.stringify({ name: 'adopter', private: true, type: 'module' }));
    const parameters = ['install', '--offline', '--legacy-peer-deps', this.packed.tarball];
    await this.run('npm', parameters);
    for (const from of beside) symlinkSync(from, path.join(this.folder, 'node_modules', path.basename(from)));
  }

  write(name: string, text: string): void {
    mkdirSync(path.dirname(path.join(this.folder, name)), { recursive: true });
    writeFileSync(path.join(this.folder, name), text);
  }

  read(name: string): string {
    return readFileSync(path.join(this.folder, name), 'utf8');
  }

  /**
   * Runs node, npm, or a tool of the repository's `node_modules/.bin`. Returns the output, or throws it if the command fails.
   * @param variables AWS credentials and endpoints
   */
  async run(command: string, parameters: string[], variables: Record<string, string> = {}): Promise<string> {
    const env = {
      PATH: [path.dirname(process.execPath), path.join(modules, '.bin'), process.env['PATH']].join(
        path.delimiter,
      ),
      HOME: this.folder,
      AWS_EC2_METADATA_DISABLED: 'true',
      CDK_DISABLE_CLI_TELEMETRY: 'true',
      npm_config_registry: 'http://127.0.0.1:9',
      npm_config_update_notifier: 'false',
      ...variables,
    };
    const { exitCode, output } = await runProgram(command, parameters, { cwd: this.folder, env });
    if (exitCode !== 0) throw new Error(`${command} ${parameters.join(' ')}: ${exitCode}\n${output}`);
    return output;
  }

  /** Every stack of a synthesized app, including those of its stages. */
  stacks(outputFolder: string): SynthesizedStack[] {
    const files = readdirSync(path.join(this.folder, outputFolder), { recursive: true, encoding: 'utf8' });
    return files
      .filter((file) => path.basename(file) === 'manifest.json')
      .flatMap((file) => this.stacksOf(path.join(outputFolder, path.dirname(file))));
  }

  private stacksOf(assembly: string): SynthesizedStack[] {
    const { artifacts } = this.json(assembly, 'manifest.json') as {
      artifacts: Record<string, StackArtifact>;
    };
    return Object.values(artifacts)
      .filter(({ type }) => type === 'aws:cloudformation:stack')
      .map(({ environment, properties }) => {
        const template = this.json(assembly, properties.templateFile) as Template;
        const manifest = properties.templateFile.replace('.template.json', '.assets.json');
        const { files } = this.json(assembly, manifest) as { files: Record<string, Asset> };
        const assets = Object.values(files).map(({ source }) => path.join(assembly, source.path));
        const region = String(environment.split('/').at(-1));
        return { name: properties.stackName, region, template, assets };
      });
  }

  private json(...parts: string[]): unknown {
    return JSON.parse(this.read(path.join(...parts)));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

interface StackArtifact {
  type: string;
  environment: string;
  properties: { templateFile: string; stackName: string };
}

interface Asset {
  source: { path: string };
}
