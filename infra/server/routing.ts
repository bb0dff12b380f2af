/** Which handle serves a path: the one of the function to which the distribution sends it. */
import type { HostedHandle } from '../../shared/relay/http/http.ts';
import { defaultFunction, routes } from '../stack/constructs/routes.ts';

export interface Route {
  hosted: HostedHandle;
  /** It knows its callers by a signature over the body: a body without a key is read. */
  isSigned: boolean;
}

/** The hooks of providers of payments. */
const signed: keyof Handles = 'payments';

type Handles = Readonly<Record<(typeof routes)[number]['function'], HostedHandle>>;

/** @param handles by name of the function. Throws an Error when one is missing. */
export function routing(handles: Partial<Handles>): (path: string) => Route {
  const routeTo = (name: string): Route => {
    const hosted = (handles as Record<string, HostedHandle | undefined>)[name];
    if (!hosted) throw new Error(`a route leads to ${name}, which the server does not have`);
    return { hosted, isSigned: name === signed };
  };
  const known = routes.map(({ path, function: name }) => ({ matches: matcher(path), route: routeTo(name) }));
  const others = routeTo(defaultFunction);
  return (path) => known.find(({ matches }) => matches(path))?.route ?? others;
}

/** Of CloudFront's path patterns, those that end with `*` and those without. */
function matcher(pattern: string): (path: string) => boolean {
  if (!pattern.endsWith('*')) return (path) => path === pattern;
  const prefix = pattern.slice(0, -1);
  return (path) => path.startsWith(prefix);
}
