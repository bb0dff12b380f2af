/**
 * Writes the bill of materials of a release (CycloneDX): the packages whose code is in a bundle, with their hashes from the lock file.
 * `npm sbom` alone would also list all build tools, and mark packages that only the console and the server load as development.
 *
 *     npm run package:sbom
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readPackageVersion } from '../stack/relay.ts';

const projectFolder = resolve(import.meta.dirname, '..', '..');

interface Component {
  'bom-ref': string;
  scope?: string;
  properties?: object[];
  hashes?: object[];
}

export interface BillOfMaterials {
  metadata: { component: { name: string; 'bom-ref': string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** @param metaFolder the build's lists of inputs, one file a bundle */
export function makeBillOfMaterials(metaFolder = join(projectFolder, 'dist', 'meta')): BillOfMaterials {
  const bundled = findBundledPackages(metaFolder);
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const output = execFileSync('npm', words, { cwd: projectFolder, encoding: 'utf8' });
  const { metadata, components, dependencies, ...others } = JSON.parse(output) as BillOfMaterials;
  const found = components.filter((each) => bundled.has(each['bom-ref']));
  if (found.length < bundled.size)
    throw new Error('a bundle contains a package that is missing in package-lock.json');
  return {
    ...others,
    // npm takes the name of the folder.
    metadata: { ...metadata, component: { ...metadata.component, name: 'relay' } },
    components: found.map(markRequired),
    dependencies: dependencies
      .filter(({ ref }) => bundled.has(ref) || ref === metadata.component['bom-ref'])
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => bundled.has(each)) })),
  };
}

const markRequired = (component: Component): Component => ({
  ...component,
  scope: 'required',
  properties: [],
});

/** Returns name and version of each: `zod@4.6.7`. */
function findBundledPackages(metaFolder: string): Set<string> {
  const lock = JSON.parse(readFileSync(join(projectFolder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { name?: string; version: string }>;
  };
  const files = readdirSync(metaFolder).filter((file) => file.endsWith('.json'));
  const inputs = files.flatMap((file) => {
    const meta = JSON.parse(readFileSync(join(metaFolder, file), 'utf8')) as { inputs: object };
    return Object.keys(meta.inputs);
  });
  const folders = inputs.flatMap(
    (input) => /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(input) ?? [],
  );
  return new Set(
    folders.map((folder) => {
      const { version = '', name = folder.replace(/.*node_modules\//, '') } = lock.packages[folder] ?? {};
      return `${name}@${version}`;
    }),
  );
}

if (import.meta.main) {
  const file = join(projectFolder, `relay-${readPackageVersion()}.cdx.json`);
  writeFileSync(file, `${JSON.stringify(makeBillOfMaterials(), null, 2)}\n`);
  console.log(file);
}
