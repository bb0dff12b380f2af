/**
 * CloudFormation's published schemas of resource types, as aws-cdk-lib carries them: unknown, missing and misspelt
 * properties, patterns, lengths, ranges, and which properties cannot change without a new resource.
 */
import { createRequire } from 'node:module';
import type { Resource } from './template.ts';

/** A dependency of aws-cdk-lib, not of this repository. */
const validatorPackage = '@aws/cloudformation-validate';

interface Diagnostic {
  ruleId: string;
  severity: string;
  message: string;
  entity?: { logicalId: string };
  propertyPath?: string;
}

interface Validator {
  validate(template: unknown, region?: string): Diagnostic[];
}

interface ValidationPackage {
  SchemaValidator: new () => Validator;
  TemplateContent: new (content: string) => unknown;
}

/** The engine's rule for each property that is set and can be set only once. */
const createOnlyRule = 'I9001';
/** A value outside a property's enumeration: the engine only warns, CloudFormation rejects it. */
const enumerationRule = 'W3030';
const grave = new Set(['FATAL', 'ERROR']);

interface Found {
  errors: string[];
  createOnly: string[];
}

export interface SchemaFindings {
  /** By logical id. */
  errors: ReadonlyMap<string, string[]>;
  /** By logical id: paths such as `KeySchema`, of the properties that are set. */
  createOnly: ReadonlyMap<string, string[]>;
}

/** Loading the engine takes most of a second, and so does checking a new template, so all files of a worker share both. */
let engine: { package: ValidationPackage; validator: Validator } | undefined;
/** By region, type and properties. */
const known = new Map<string, Found>();

function loadEngine(): NonNullable<typeof engine> {
  const require = createRequire(createRequire(import.meta.url).resolve('aws-cdk-lib/package.json'));
  const loaded = require(validatorPackage) as ValidationPackage;
  return { package: loaded, validator: new loaded.SchemaValidator() };
}

export function checkSchemas(resources: Iterable<Resource>, region: string): SchemaFindings {
  const errors = new Map<string, string[]>();
  const createOnly = new Map<string, string[]>();
  const keys = new Map(
    [...resources].map((resource) => [
      resource,
      `${region} ${JSON.stringify([resource.type, resource.properties])}`,
    ]),
  );
  validateNew(keys, region);
  for (const [{ id }, key] of keys) {
    const found = known.get(key);
    if (found?.errors.length) errors.set(id, found.errors);
    createOnly.set(id, found?.createOnly ?? []);
  }
  return { errors, createOnly };
}

/** Validates all new resources at once: most of a deployment equals the previous one. */
function validateNew(keys: ReadonlyMap<Resource, string>, region: string): void {
  const fresh = [...keys].filter(([, key]) => !known.has(key));
  if (fresh.length === 0) return;
  engine ??= loadEngine();
  const body = Object.fromEntries(
    fresh.map(([{ type, properties }], index) => [`R${index}`, { Type: type, Properties: properties }]),
  );
  const content = new engine.package.TemplateContent(JSON.stringify({ Resources: body }));
  const found = fresh.map((): Found => ({ errors: [], createOnly: [] }));
  for (const { ruleId, severity, message, entity, propertyPath = '' } of engine.validator.validate(
    content,
    region,
  )) {
    const about = found[Number(entity?.logicalId.slice(1))];
    const path = propertyPath.replace(/^Properties\./, '');
    if (ruleId === createOnlyRule) about?.createOnly.push(path);
    else if (grave.has(severity) || ruleId === enumerationRule)
      about?.errors.push(`Properties validation failed: #/${path}: ${message}`);
  }
  for (const [index, [, key]] of fresh.entries())
    known.set(key, found[index] ?? { errors: [], createOnly: [] });
}
