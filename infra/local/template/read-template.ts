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
  /** Returns the asset that is uploaded as `<key>` on AWS. */
  asset(key: string): Asset;
}

export interface Asset {
  folder: string;
  /** Path of its construct in the CDK app: `Functions/chat/Function/Code`. */
  displayName: string;
}

interface Body {
  Resources?: Record<string, Resource>;
  Parameters?: Template['parameters'];
}

interface AssetManifest {
  files?: Record<
    string,
    {
      displayName?: string;
      source: { path: string };
      destinations: Record<string, { objectKey: string }>;
    }
  >;
}

/**
 * Reads `<folder>/<stack>.template.json` and its asset manifest. Throws StartError when the template is
 * missing, or contains a resource type or an intrinsic function that the local stack does not support.
 */
export function readTemplate(folder: string, stackName: string): Template {
  const body = readJson(folder, `${stackName}.template.json`) as Body;
  const manifest = readJson(folder, `${stackName}.assets.json`) as AssetManifest;
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

function readJson(folder: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
  } catch (error) {
    throw new StartError(
      `no synthesized stack in ${folder} (${(error as Error).message}); run it with npm start`,
    );
  }
}

/** Throws StartError for the first part of a template that the local stack does not support. */
export function checkResources(resources: Record<string, Resource>): void {
  for (const [id, resource] of Object.entries(resources)) {
    if (resource.Type in ignoredTypes) continue;
    if (!isRunType(resource.Type)) throw new StartError(`unknown resource type ${resource.Type} (${id})`);
    if (resource.Condition !== undefined) throw new StartError(`conditional resources are not known (${id})`);
    for (const [, name = ''] of JSON.stringify(resource.Properties ?? {}).matchAll(intrinsicKey))
      if (!intrinsicNames.includes(name)) throw new StartError(`unknown intrinsic function ${name} (${id})`);
  }
}

/** Matches only keys of the JSON: within a string the quotes are escaped. */
const intrinsicKey = /"(Fn::[^"\\]*)":/g;

/** Returns the resources of the given types in the template's order. */
export function resourcesOf(template: Template, ...types: RunType[]): [id: string, resource: Resource][] {
  return Object.entries(template.resources).filter(([, resource]) =>
    types.some((type) => type === resource.Type),
  );
}
