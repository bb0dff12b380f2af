/** Which handle serves a path: the one of the function to which the distribution sends it. */
import type { HostedHandle } from '../../shared/relay/http/http.ts';
import { defaultFunction, routes } from '../stack/constructs/routes.ts';

type Handles = Readonly<Record<(typeof routes)[number]['function'], HostedHandle>>;

/** @param handles by name of the function. Throws an Error when one is missing. */
export function routing(handles: Partial<Handles>): (path: string) => HostedHandle {
  const handleOf = (name: string): HostedHandle => {
    const handle = (handles as Record<string, HostedHandle | undefined>)[name];
    if (!handle) throw new Error(`a route leads to ${name}, which the server does not have`);
    return handle;
  };
  const known = routes.map(({ path, function: name }) => ({
    matches: matcher(path),
    handle: handleOf(name),
  }));
  const others = handleOf(defaultFunction);
  return (path) => known.find(({ matches }) => matches(path))?.handle ?? others;
}

/** Of CloudFront's path patterns, those that end with `*` and those without. */
function matcher(pattern: string): (path: string) => boolean {
  if (!pattern.endsWith('*')) return (path) => path === pattern;
  const prefix = pattern.slice(0, -1);
  return (path) => path.startsWith(prefix);
}
