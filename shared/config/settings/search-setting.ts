import * as z from 'zod/mini';
import { integerBetween, text } from '../rows/attribute-schemas.ts';
import { endpointProblem, normaliseEndpoint } from '../../upstreams/endpoint-rules.ts';
import { referenceProblem, type ReferenceRules } from '../rows/secret-reference.ts';
import type { SearchSettings } from './settings.ts';

const wantedLanguage = 'a language code such as "en" or "zh-CN"';
const resultsWanted = 'a whole number from 1 to 10';

/** The setting `search`: the search provider for models whose name starts with `web-`. */
export const SearchValue = z.strictObject(
  {
    type: z.enum(['searxng', 'tavily'], '"searxng" or "tavily"'),
    /** The base address. Optional for Tavily, which has a default. */
    endpoint: z.optional(text),
    /** A secret reference, as in channels. Absent: no credentials are sent. */
    secret: z.optional(text),
    /** The number of results put into the prompt; fewer if they do not fit. */
    results: z._default(integerBetween(1, 10, resultsWanted), 5),
    /** Only for SearXNG. */
    language: z.optional(
      z.string(wantedLanguage).check(z.regex(/^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$/, wantedLanguage)),
    ),
  },
  'a map {type, endpoint, secret, results, language}',
);
type SearchValue = z.infer<typeof SearchValue>;

const tavilyEndpoint = 'https://api.tavily.com';

/** Checks the rules beyond the schema. Address and secret follow the same rules as a channel's. */
export function readSearch(
  { endpoint, ...value }: SearchValue,
  rules: ReferenceRules,
): { problem: string } | { search: SearchSettings } {
  const address = endpoint ?? (value.type === 'tavily' ? tavilyEndpoint : undefined);
  if (address === undefined)
    return { problem: 'value.endpoint: found nothing, wanted the address of SearXNG' };
  const wrongEndpoint = endpointProblem(address, rules);
  if (wrongEndpoint !== undefined) return { problem: `value.endpoint: ${wrongEndpoint}` };
  const wrongSecret = value.secret === undefined ? undefined : referenceProblem(value.secret, rules);
  if (wrongSecret !== undefined) return { problem: `value.secret: ${wrongSecret}` };
  if (value.type === 'tavily' && value.language !== undefined) {
    return { problem: 'value.language: found one, but only searxng takes a language' };
  }
  return { search: { ...value, endpoint: normaliseEndpoint(address).replace(/\/search$/, '') } };
}
