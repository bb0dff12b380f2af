import type { OriginTimeouts } from './viewer-reply.ts';
import { StartError } from '../host/start-error.ts';

/** The origin that receives the requests of one behaviour. */
export interface Origin {
  domain: string;
  pathPrefix: string;
  headers: Record<string, string>;
  timeouts: OriginTimeouts;
}

export interface Behaviour {
  matches(path: string): boolean;
  methods: ReadonlySet<string>;
  origin: Origin;
}

interface BehaviourProperties {
  PathPattern?: string;
  TargetOriginId: string;
  AllowedMethods?: string[];
}

interface OriginProperties {
  Id: string;
  DomainName: string;
  OriginPath?: string;
  OriginCustomHeaders?: { HeaderName: string; HeaderValue: string }[];
  CustomOriginConfig?: { OriginReadTimeout?: number };
  ResponseCompletionTimeout?: number;
}

/** The emulated parts of a distribution's resolved configuration. */
export interface DistributionConfig {
  Origins: OriginProperties[];
  CacheBehaviors?: BehaviourProperties[];
  DefaultCacheBehavior: BehaviourProperties;
}

const cloudFrontReadTimeoutSeconds = 30;

/** Returns the behaviours in matching order; the last one matches every path. */
export function readBehaviours(config: DistributionConfig): Behaviour[] {
  const origins = new Map(config.Origins.map((origin) => [origin.Id, readOrigin(origin)]));
  const read = (properties: BehaviourProperties, pattern: string): Behaviour => {
    const origin = origins.get(properties.TargetOriginId);
    if (origin === undefined)
      throw new StartError(`a behaviour names the unknown origin ${properties.TargetOriginId}`);
    const expression = patternExpression(pattern);
    return {
      matches: (path) => expression.test(path),
      methods: new Set(properties.AllowedMethods ?? ['GET', 'HEAD']),
      origin,
    };
  };
  const named = (config.CacheBehaviors ?? []).map((properties) =>
    read(properties, properties.PathPattern ?? '*'),
  );
  return [...named, read(config.DefaultCacheBehavior, '*')];
}

function readOrigin(properties: OriginProperties): Origin {
  const readTimeout = properties.CustomOriginConfig?.OriginReadTimeout ?? cloudFrontReadTimeoutSeconds;
  const completion = properties.ResponseCompletionTimeout;
  return {
    domain: properties.DomainName,
    pathPrefix: properties.OriginPath ?? '',
    headers: Object.fromEntries(
      (properties.OriginCustomHeaders ?? []).map((header) => [
        header.HeaderName.toLowerCase(),
        header.HeaderValue,
      ]),
    ),
    timeouts: {
      readTimeoutMs: readTimeout * 1000,
      ...(completion !== undefined && { completionTimeoutMs: completion * 1000 }),
    },
  };
}

/**
 * Converts a CloudFront path pattern: `*` matches any text, `?` any character; the leading slash is optional.
 */
export function patternExpression(pattern: string): RegExp {
  const body = pattern
    .replace(/^\//, '')
    .replace(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^/${body}$`, 's');
}
