/** Features of the API that the header `anthropic-beta` names, and the fields that are unknown to the vendor without them. */
import { isRecord } from '../../../../shared/wire/json.ts';
import { type Rules } from '../vendor.ts';

export interface Gate {
  headers: Record<string, string>;
  value: Record<string, unknown> | undefined;
}

export interface Betas {
  known: ReadonlySet<string>;
  /** The words for names that are not known. */
  unknown: (names: string[]) => string;
  /** Betas that a field needs, by its path; any one of them is enough. */
  fields: [path: RegExp, betas: string[]][];
}

const interleaved = 'interleaved-thinking-2025-05-14';
const clearing = 'context-management-2025-06-27';
const compacting = 'compact-2026-01-12';
const binding = 'thinking-binding-controls-2026-08-01';
const inline = 'inline-tools-2026-09-15';
const threads = 'message-threads-2026-08-12';

/** The SDK's list (`AnthropicBeta`) as far as it is about messages, and what Claude Code 2.1 sends. */
const anthropicBetas =
  `${interleaved} ${clearing} ${compacting} claude-code-20250219 thinking-token-count-2026-05-13 ` +
  'prompt-caching-scope-2026-01-05 mid-conversation-system-2026-04-07 effort-2025-11-24 context-1m-2025-08-07 ' +
  'advanced-tool-use-2025-11-20 fine-grained-tool-streaming-2025-05-14 structured-outputs-2025-11-13 ' +
  'structured-outputs-2025-12-15 web-search-2025-03-05 tool-search-tool-2025-10-19 ' +
  `extended-cache-ttl-2025-04-11 ${binding} ${inline} redact-thinking-2026-02-12 ` +
  `mid-conversation-tool-changes-2026-07-01 ${threads} cache-diagnosis-2026-04-07 ` +
  'task-budgets-2026-03-13 mcp-client-2025-11-20 fast-mode-2026-02-01 files-api-2025-04-14 skills-2025-10-02';

const sharedFields: Betas['fields'] = [
  [/^context_management$/, [clearing, compacting]],
  [/^thinking\.block_binding$/, [binding]],
  [/^thread$/, [threads]],
  [/\.tool\.definition$/, [inline]],
  [/\bcache_control\.scope$/, ['prompt-caching-scope-2026-01-05']],
];

export const claudeBetas: Betas = {
  known: new Set(anthropicBetas.split(' ')),
  unknown: (names) =>
    `Unexpected value(s) ${names.map((name) => `\`${name}\``).join(', ')} for the \`anthropic-beta\` header. Please consult our documentation at docs.claude.com or try again without the header.`,
  fields: sharedFields,
};

/** The newest models there know few names [anthropics/claude-code/issues/49370, 2026-04-16; Wei-Shaw/sub2api/issues/2726]. */
export const bedrockBetas: Betas = {
  known: new Set([
    interleaved,
    clearing,
    compacting,
    binding,
    'tool-search-tool-2025-10-19',
    'fine-grained-tool-streaming-2025-05-14',
  ]),
  unknown: () => 'invalid beta flag',
  fields: [
    ...sharedFields,
    [/^tools\.\d+\.defer_loading$|\.tool_name$/, ['tool-search-tool-2025-10-19']],
    [/^tools\.\d+\.eager_input_streaming$/, ['fine-grained-tool-streaming-2025-05-14']],
  ],
};

const listNamedBetas = ({ headers }: Gate): string[] =>
  (headers['anthropic-beta'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

export const createBetaRules = ({ known, unknown, fields }: Betas): Rules<Gate> => ({
  // Names that the vendor does not know are refused [pacifio/cersei/issues/20, 2026-06-25; anthropics/claude-code/issues/13770].
  betas(gate) {
    const others = listNamedBetas(gate).filter((name) => !known.has(name));
    return others.length > 0 && unknown(others);
  },
  // A field of a feature is unknown without the feature's name [Wei-Shaw/sub2api/issues/2726, 2026-05-23;
  // anthropics/claude-code/issues/31033, 2026-03-05].
  'beta-fields'(gate) {
    const named = listNamedBetas(gate);
    const isLocked = (path: string): boolean =>
      fields.some(([pattern, betas]) => pattern.test(path) && !betas.some((beta) => named.includes(beta)));
    const locked = [...listPaths(gate.value)].find(isLocked);
    return locked !== undefined && `${locked}: Extra inputs are not permitted`;
  },
});

/** The paths of all members, outer ones first. */
function* listPaths(value: unknown, at: string[] = []): Generator<string> {
  if (at.length > 0) yield at.join('.');
  const inner = Array.isArray(value) || isRecord(value) ? Object.entries(value) : [];
  for (const [name, each] of inner) yield* listPaths(each, [...at, name]);
}
