/**
 * Removes from an upstream's error text what identifies the upstream to clients and in logs: what the relay knows of
 * the channel, then whatever has the shape of an address, a key or an account.
 */

const lengthMax = 600;

/** A text to remove wherever it stands, or a pattern (with the flag `g`) of one. */
export type Withheld = string | RegExp;

/** Replaces a withheld word until all patterns have run, so that they still match an address around it. */
const placeholder = 'x-withheld-x';

/** Patterns of hosts, addresses, keys, accounts, markup and file paths, with their replacements. */
const revealing: [RegExp, string][] = [
  [/<[^>]*>/g, ' '],
  // An empty account of ours, which a client would take for its own.
  [/\bYour credit balance is too low\b[^.]*\.?(?:\s*Please go to Plans & Billing[^.]*\.?)?/gi, ''],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[removed]'],
  [/\barn:aws[\w-]*:[^\s"'`<>,;)\]]+/gi, '[removed]'],
  [/\b(?:sk|pk|rk)[-_][A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  // With a digit, a capital or a star: `key-value-pairs` and `org_wide_limits` are words.
  [/\b(?:org|proj|key|acct|wrkspc)[-_](?=[a-z_.-]*[0-9A-Z*])[A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  [/\bAIza[\w-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/g, '[removed]'],
  [/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, '[removed]'],
  [/\b(?:\d{12}|\d{4}-\d{4}-\d{4})\b/g, '[removed]'],
  [/\bproject(?:[_ ](?:number|id))?[:\s]+["'`]?\d{6,}/gi, 'project [removed]'],
  [
    /\b(?:projects|subscriptions|resourceGroups|deployments|accounts|inference-profile|foundation-model)\/[\w.:@-]+(?:\/[\w.:@-]+)*/gi,
    '[removed]',
  ],
  [
    /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cn|cloud|internal|local|app|aws|us|eu|co|run|svc)\b(?::\d+)?(?:\/\S*)?/gi,
    '[removed]',
  ],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '[removed]'],
  [/\[[0-9a-f:.]*:[0-9a-f:.]*(?:%\w+)?\](?::\d+)?/gi, '[removed]'],
  [/\b[a-z][a-z0-9.-]*:\d{2,5}\b/gi, '[removed]'],
  [/\blocalhost\b/gi, '[removed]'],
  [/(?:\/[\w.@-]+){2,}/g, '[removed]'],
  [/x-withheld-x/g, '[removed]'],
  [/\s+/g, ' '],
];

/** The start of a stack trace. The text is cut there. */
const stackTrace = /Traceback \(most recent|\n\s+at |\bat \S+ \(\S+:\d+:\d+\)|File "[^"]+", line \d+/;

export function scrub(value: unknown, withheld: readonly Withheld[]): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  let text = (value.slice(0, 4 * lengthMax).split(stackTrace)[0] ?? '').trimEnd();
  for (const word of withheld) if (word !== '') text = text.replaceAll(word, placeholder);
  for (const [pattern, replacement] of revealing) text = text.replace(pattern, replacement);
  return text.trim().slice(0, lengthMax) || undefined;
}
