/** Creates the local functions of the template with their settings and variables. */
import { type StackLog, StartError } from '../host/messages.ts';
import type { FunctionSettings } from '../lambda/environment.ts';
import { servedFunctions } from '../../stack/constructs/function-descriptions.ts';
import { createFunctionUrl, type FunctionUrl, type InvokeMode } from '../lambda/function-url.ts';
import { LocalFunction } from '../lambda/local-function.ts';
import {
  resourcesOf,
  type Template,
  functionOf,
  nameFunctionUrlHost,
  type LocalReferences,
} from './template.ts';

export interface LocalFunctionOptions {
  /** Variables of all functions; the template overrides them. */
  environment: Record<string, string>;
  /** Variables of the local stack; they override the template. */
  localEnvironment: Record<string, string>;
  environmentsMax: number;
}

/** Events can wait, and a second process of `config` took a tenth of the processor time of a start. */
const eventEnvironmentsMax = 1;

interface FunctionProperties {
  Code: { S3Key: string };
  Handler: string;
  Timeout?: number;
  MemorySize?: number;
  Environment?: { Variables?: Record<string, unknown> };
  LoggingConfig?: { LogFormat?: string };
  FunctionName?: string;
}

/** Returns the template's functions by logical id. No process starts before the first invocation. */
export function buildFunctions(
  references: LocalReferences,
  options: LocalFunctionOptions,
  log: StackLog,
): Map<string, LocalFunction> {
  const { template } = references;
  const calledBy = (type: 'AWS::Lambda::EventSourceMapping' | 'AWS::Lambda::EventInvokeConfig') =>
    resourcesOf(template, type).map(([, { Properties = {} }]) =>
      functionOf(Properties['FunctionName'], template),
    );
  const scheduled = resourcesOf(template, 'AWS::Events::Rule').flatMap(([, { Properties = {} }]) =>
    ((Properties['Targets'] ?? []) as { Arn: unknown }[]).map(({ Arn }) => functionOf(Arn, template)),
  );
  const patient = new Set([...calledBy('AWS::Lambda::EventSourceMapping'), ...scheduled]);
  // Background runs take minutes and must begin within one, so they may use all environments.
  for (const id of calledBy('AWS::Lambda::EventInvokeConfig')) patient.delete(id);
  return new Map(
    resourcesOf(template, 'AWS::Lambda::Function').map(([id]) => {
      const environmentsMax = patient.has(id)
        ? Math.min(options.environmentsMax, eventEnvironmentsMax)
        : options.environmentsMax;
      const settings = buildFunctionSettings(id, references, { ...options, environmentsMax });
      return [id, new LocalFunction(settings, log)];
    }),
  );
}

function buildFunctionSettings(
  id: string,
  references: LocalReferences,
  { environment, localEnvironment, environmentsMax }: LocalFunctionOptions,
): FunctionSettings {
  const { template } = references;
  // Other properties refer to roles and log groups, which cannot be resolved.
  const { Code, Handler, Timeout, MemorySize, Environment, FunctionName, LoggingConfig } = (template
    .resources[id]?.Properties ?? {}) as unknown as FunctionProperties;
  const properties = references.resolve({ Code, Handler, Timeout, MemorySize, Environment, FunctionName });
  const resolved = properties as FunctionProperties;
  const asset = template.asset(resolved.Code.S3Key);
  const variables = Object.entries(resolved.Environment?.Variables ?? {});
  const fixed = Object.fromEntries(variables.map(([name, value]) => [name, String(value)]));
  // Node takes several options in one variable, and the last one counts: those of the caller stay beside the template's.
  const nodeOptions = [environment, fixed].flatMap(({ NODE_OPTIONS }) => NODE_OPTIONS || []).join(' ');
  const hasVersion = resourcesOf(template, 'AWS::Lambda::Version').some(
    ([, version]) => functionOf(version.Properties?.['FunctionName'], template) === id,
  );
  return {
    // The first that is published. A URL of the function itself, which AWS would serve from $LATEST, has it here too.
    version: hasVersion ? '1' : '$LATEST',
    name: resolved.FunctionName ?? shortenName(asset.displayName) ?? id,
    arn: String(references.attribute(id, 'Arn')),
    folder: asset.folder,
    handler: resolved.Handler,
    timeoutMs: (resolved.Timeout ?? 3) * 1000,
    memoryMegabytes: resolved.MemorySize ?? 128,
    environment: {
      ...environment,
      ...fixed,
      ...(nodeOptions !== '' && { NODE_OPTIONS: nodeOptions }),
      ...(LoggingConfig?.LogFormat === 'JSON' && { AWS_LAMBDA_LOG_FORMAT: 'JSON' }),
      ...localEnvironment,
    },
    environmentsMax,
  };
}

/** Shortens `Functions/chat/Function/Code` to `chat`. */
function shortenName(displayName: string): string | undefined {
  const structural = new Set(['Functions', 'Function', 'Code', '']);
  return displayName.split('/').findLast((part) => !structural.has(part));
}

/** Returns the Function URLs by host name. @param server answers in the place of functions, as with compute `ecs` */
export function buildFunctionUrls(
  template: Template,
  functions: ReadonlyMap<string, LocalFunction>,
  server?: FunctionUrl,
): Map<string, FunctionUrl> {
  return new Map(
    resourcesOf(template, 'AWS::Lambda::Url').map(([urlId, { Properties = {} }]) => {
      const id = functionOf(Properties['TargetFunctionArn'], template);
      const mode = (Properties['InvokeMode'] ?? 'BUFFERED') as InvokeMode;
      const host = nameFunctionUrlHost(urlId);
      const called = getFunctionByName(functions, id);
      const isInPlace = servedFunctions.some((name) => name === called.settings.name);
      return [host, server && isInPlace ? server : createFunctionUrl(called, mode, host)];
    }),
  );
}

export function getFunctionByName(functions: ReadonlyMap<string, LocalFunction>, id: string): LocalFunction {
  const found = functions.get(id);
  if (found === undefined) throw new StartError(`${id} is not a function of this stack`);
  return found;
}
