/**
 * Creates a CloudFormation template for teams without CDK: the stack of a stage, with the bucket of its functions as a parameter, a
 * zip of the bucket's content, and the OpenAPI document. The same build creates the same bytes.
 *
 *     npm run package:template [-- --stage NAME]
 */
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { crc32, deflateRawSync } from 'node:zlib';
import { CfnParameter, Fn, StackSynthesizer, type FileAssetSource } from 'aws-cdk-lib';
import { createApp } from '../stack/create-app.ts';
import { readPackageVersion } from '../stack/relay.ts';

const projectFolder = resolve(import.meta.dirname, '..', '..');
const bucket = 'AssetBucket';

export interface TemplateSettings {
  outputFolder: string;
  stage?: string | undefined;
  /** By default the options of the stage's file. */
  options?: unknown;
  /** The build's output: one folder per function. Default: `dist`. */
  bundlesFolder?: string;
}

/** Uses nothing of CDK's bootstrap: no role, no bucket, no check of its version. */
class BucketOfParameter extends StackSynthesizer {
  /** Maps each key in the bucket to the folder to zip. */
  readonly folders = new Map<string, string>();

  addFileAsset({ fileName = '', sourceHash }: FileAssetSource) {
    const objectKey = `relay-${readPackageVersion()}/${sourceHash}.zip`;
    this.folders.set(objectKey, fileName);
    const objectUrl = `s3://\${${bucket}}/${objectKey}`;
    return { bucketName: Fn.ref(bucket), objectKey, httpUrl: objectUrl, s3ObjectUrl: objectUrl };
  }

  addDockerImageAsset(): never {
    throw new Error('service.image: a template builds none, name one that exists');
  }

  synthesize(session: Parameters<StackSynthesizer['synthesize']>[0]): void {
    this.synthesizeTemplate(session);
  }
}

/** Paths of the created files. `assets` is a zip of zips, each named after its key in the template. */
interface TemplateFiles {
  template: string;
  assets: string;
  api: string;
}

export function makeTemplate(settings: TemplateSettings): TemplateFiles {
  const { bundlesFolder = join(projectFolder, 'dist'), stage, options } = settings;
  const folder = mkdtempSync(join(tmpdir(), 'relay-template-'));
  try {
    const synthesizer = new BucketOfParameter();
    const context = stage === undefined ? {} : { stage };
    const made = { outputFolder: folder, bundlesFolder, context, options, synthesizer, validate: false };
    const { app, stack, edge } = createApp(made);
    if (edge.length > 0) throw new Error('webAcl, edgeAlarms: stacks of another region need CDK');
    void new CfnParameter(stack, bucket, {
      description: 'The bucket that has the assets, in the region of the stack',
      allowedPattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
    });
    app.synth();
    const name = join(settings.outputFolder, `${stack.stackName}-${readPackageVersion()}`);
    const files = {
      template: `${name}.template.json`,
      assets: `${name}-assets.zip`,
      api: `${name}.openapi.json`,
    };
    copyFileSync(join(folder, stack.templateFile), files.template);
    copyFileSync(join(projectFolder, 'docs', 'openapi.json'), files.api);
    const zips = Array.from(synthesizer.folders, ([key, each]): Entry => [
      key,
      zipFolder(join(folder, each)),
    ]);
    writeFileSync(files.assets, zipOf(zips));
    return files;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Entry = readonly [name: string, content: Buffer];

function zipFolder(folder: string): Buffer {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  const files = all.filter((file) => statSync(join(folder, file)).isFile());
  return zipOf(files.map((file) => [file, readFileSync(join(folder, file))]));
}

/** Writes a zip by PKWARE's APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16: UTF-8 names, deflated, dated 1 January 1980. */
function zipOf(entries: readonly Entry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of entries) {
    const packed = deflateRawSync(content);
    const path = Buffer.from(name);
    const sizes = [
      encodeFourBytes(crc32(content), packed.length, content.length),
      encodeTwoBytes(path.length, 0),
    ];
    const common = Buffer.concat([encodeTwoBytes(20, 0x800, 8, 0, 0x21), ...sizes]);
    // Sets Unix permissions that let everybody read, because Lambda runs as another user.
    const rest = [encodeTwoBytes(0, 0, 0), encodeFourBytes(0o100644 * 0x1_0000, offset), path];
    directory.push(Buffer.from('PK\u0001\u0002'), encodeTwoBytes(0x314), common, ...rest);
    files.push(Buffer.concat([Buffer.from('PK\u0003\u0004'), common, path, packed]));
    offset += files.at(-1)?.length ?? 0;
  }
  const central = Buffer.concat(directory);
  const counts = encodeTwoBytes(0, 0, entries.length, entries.length);
  const end = [
    Buffer.from('PK\u0005\u0006'),
    counts,
    encodeFourBytes(central.length, offset),
    encodeTwoBytes(0),
  ];
  return Buffer.concat([...files, central, ...end]);
}

const encodeTwoBytes = (...values: number[]): Buffer => Buffer.from(Uint16Array.from(values).buffer);
const encodeFourBytes = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);

if (import.meta.main) {
  const { values } = parseArgs({ options: { stage: { type: 'string' } } });
  console.log(Object.values(makeTemplate({ outputFolder: projectFolder, ...values })).join('\n'));
}
