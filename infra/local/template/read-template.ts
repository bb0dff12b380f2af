import { readFileSync } from 'node:fs';
import path from 'node:path';
import { StartError } from '../host/start-error.ts';
import { intrinsicNames } from './resolve.ts';
import { ignoredTypes, isRunType, type RunType } from './resource-types.ts';

export interface Resource {
  Type: string;
  Properties?: Record<string, unknown>;
  Metadata?: Record<string, unknown>;
  Condition?: string;
}

export interface Template {
  stackName: string;
  parameters: Record<string, { Default?: unknown }>;
  resources: Record<string, Resource>;
  /** The asset that is uploaded as `<key>` on AWS. */
  asset(key: string): Asset;
}

export interface Asset {
  folder: string;
  /** Where it stands in the CDK app: `Functions/chat/Function/Code`. */
  displayName: string;
}

interface AssetManifest {
  files?: Record<string, AssetEntry>;
}

interface AssetEntry {
  displayName?: string;
  source: { path: string };
  destinations: Record<string, { objectKey: string }>;
}

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

/**
 * Reads `<folder>/<stack>.template.json` and its asset manifest. Throws StartError when the template is missing,
 * or holds a resource type or an intrinsic function that the local stack does not know.
 */
export function readTemplate(folder: string, stackName: string): Template {
  const file = path.join(folder, `${stackName}.template.json`);
  let body: { Resources?: Record<string, Resource>; Parameters?: Template['parameters'] };
  let manifest: AssetManifest;
  try {
    body = readJson(file) as typeof body;
    manifest = readJson(path.join(folder, `${stackName}.assets.json`)) as AssetManifest;
  } catch (error) {
    throw new StartError(
      `no synthesized stack in ${folder} (${(error as Error).message}); run it with npm start`,
    );
  }
  const assets = new Map<string, Asset>();
  for (const { source, destinations, displayName = '' } of Object.values(manifest.files ?? {}))
    for (const { objectKey } of Object.values(destinations))
      assets.set(objectKey, { folder: path.resolve(folder, source.path), displayName });
  const resources = body.Resources ?? {};
  checkResources(resources);
  return {
    stackName,
    parameters: body.Parameters ?? {},
    resources,
    asset(key) {
      const found = assets.get(key);
      if (found === undefined) throw new StartError(`the asset ${key} is not in the asset manifest`);
      return found;
    },
  };
}

/** Throws StartError for the first part of a template that the local stack does not support. */
export function checkResources(resources: Record<string, Resource>): void {
  for (const [id, resource] of Object.entries(resources)) {
    if (resource.Type in ignoredTypes) continue;
    if (!isRunType(resource.Type)) throw new StartError(`unknown resource type ${resource.Type} (${id})`);
    if (resource.Condition !== undefined) throw new StartError(`conditional resources are not known (${id})`);
    checkIntrinsics(id, resource.Properties);
  }
}

function checkIntrinsics(id: string, value: unknown): void {
  if (Array.isArray(value)) for (const item of value) checkIntrinsics(id, item);
  else if (typeof value === 'object' && value !== null)
    for (const [key, inner] of Object.entries(value)) {
      if (key.startsWith('Fn::') && !intrinsicNames.includes(key))
        throw new StartError(`unknown intrinsic function ${key} (${id})`);
      checkIntrinsics(id, inner);
    }
}

/** The resources of one type, in the template's order. */
export function resourcesOf(template: Template, ...types: RunType[]): [id: string, resource: Resource][] {
  return Object.entries(template.resources).filter(([, resource]) =>
    types.some((type) => type === resource.Type),
  );
}
