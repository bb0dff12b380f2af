/** Removes from an upstream's error text what identifies the upstream to clients and in logs. */

const lengthMax = 600;

/** Replaces a withheld word until all patterns have run, so that they still match an address around it. */
const placeholder = 'x-withheld-x';

/** Patterns of hosts, addresses, keys, markup and file paths, with their replacements. */
const revealing: [RegExp, string][] = [
  [/<[^>]*>/g, ' '],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[removed]'],
  [/\b(?:sk|pk|rk|org|proj|key|AIza)[-_][A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  [
    /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cn|cloud|internal|local|app)\b(?::\d+)?(?:\/\S*)?/gi,
    '[removed]',
  ],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '[removed]'],
  [/\[[0-9a-f:.%]*:[0-9a-f:.%]*\](?::\d+)?/gi, '[removed]'],
  [/\b[a-z][a-z0-9.-]*:\d{2,5}\b/gi, '[removed]'],
  [/\blocalhost\b/gi, '[removed]'],
  [/(?:\/[\w.@-]+){2,}/g, '[removed]'],
  [/x-withheld-x/g, '[removed]'],
  [/\s+/g, ' '],
];

/** The start of a stack trace. The text is cut there. */
const stackTrace = /Traceback \(most recent|\n\s+at |\bat \S+ \(\S+:\d+:\d+\)|File "[^"]+", line \d+/;

export function scrub(value: unknown, withheld: readonly string[]): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  let text = (value.slice(0, 4 * lengthMax).split(stackTrace)[0] ?? '').trimEnd();
  for (const word of withheld) if (word !== '') text = text.replaceAll(word, placeholder);
  for (const [pattern, replacement] of revealing) text = text.replace(pattern, replacement);
  return text.trim().slice(0, lengthMax) || undefined;
}
