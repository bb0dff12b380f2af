/**
 * Removes everything from an upstream's error text that identifies the upstream to clients and in logs: what the relay
 * knows about the channel, then anything shaped like an address, a key or an account.
 */

const lengthMax = 600;

/** A text to remove everywhere, or a pattern (with the flag `g`). */
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
  // Also behind an underscore, as in a code `bad_sk-...`.
  [/(?<![A-Za-z0-9])(?:sk|pk|rk)[-_][A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  // With a digit, a capital or a star: `key-value-pairs` and `org_wide_limits` are words.
  [/\b(?:org|proj|key|acct|wrkspc)[-_](?=[a-z_.-]*[0-9A-Z*])[A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  // Masked keys, and whatever follows "API key:".
  [/[\w.-]*\*{3,}[\w.-]*/g, '[removed]'],
  [/(\bapi[ _-]?key(?: provided)?: ?)["'`]?[^\s"'`,;]+/gi, '$1[removed]'],
  [/\bAIza[\w-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/g, '[removed]'],
  // Keys of Groq, xAI, NVIDIA, Together and others: a gateway may quote its key at the vendor. AWS tokens and JSON Web Tokens.
  [/\b(?:gsk|xai|nvapi|csk|pplx|tgp_v1|hf|fw|r8)[-_](?=[\w-]*?\d)(?=[\w-]*?[A-Z])[\w-]{12,}/g, '[removed]'],
  [/\bABSK[\w+/=]{12,}|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '[removed]'],
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

// Facts about a channel that its clients must not learn from errors.

export interface KnownTexts {
  secret: string | undefined;
  /** The vendor's id of the operator's customer. */
  profile?: string | undefined;
  host: string;
  region: string | undefined;
  /** The upstream's name of the model, or of the deployment. */
  model: string;
  /** The name that the client used. It may be shown. */
  publicModel: string;
  /** Names of vendors, which tell nothing in a host, alone or before `-runtime` and the like. */
  vendors: readonly string[];
}

/** Labels of hosts that name no one: parts of vendors' own addresses, and words of networks. */
const genericLabels = new Set(
  (
    'api www com net org dev app cloud amazonaws aws googleapis generativelanguage aiplatform cognitiveservices ' +
    'services service models model inference gateway proxy server cluster svc internal local localhost test example ' +
    'chat run v1'
  ).split(' '),
);
/** Names of models that are words of ordinary sentences. */
const ordinaryNames = new Set(
  (
    'assistant audio auto balanced base best chat code coder coding content context creative default embedding fast ' +
    'flash function high image input instruct large latest light lite low max medium message messages mini model nano ' +
    'normal output plus premium pro production prompt reasoning rerank request search small smart standard stream ' +
    'summary system test text thinking token tokens tool tools turbo user video vision voice'
  ).split(' '),
);
/** A shorter secret may stand inside of words. */
const secretLengthMin = 8;

export function listWithheldTexts({
  secret = '',
  profile = '',
  host,
  region = '',
  model,
  publicModel,
  vendors,
}: KnownTexts): Withheld[] {
  const names = model === publicModel ? [] : namesOf(model).filter((name) => name !== publicModel);
  const publicWords = new Set(publicModel.toLowerCase().split(/[^a-z0-9]+/));
  // Only the name of the resource in `my-resource.openai.azure.com` identifies anybody.
  const labels = host
    .toLowerCase()
    .split('.')
    .filter((label) => label.length > 2 && !/^\d+$/.test(label))
    .filter((label) => !genericLabels.has(label) && !publicWords.has(label))
    .filter((label) => !vendors.includes(label.replace(/-(?:runtime|mantle)$/, '')));
  return [
    profile,
    ...(secret.length >= secretLengthMin ? [secret, matchBeginning(secret), matchMaskedEnd(secret)] : []),
    ...(secret !== '' && secret.length < secretLengthMin ? [matchWholeWord(secret, 'g')] : []),
    ...[host, ...labels].map((word) => matchWholeWord(word, 'gi')),
    // Also within a zone's name, such as `us-east-1a`.
    ...(region === '' ? [] : [new RegExp(escapePattern(region), 'gi')]),
    ...names.map(modelNamePattern),
  ];
}

const escapePattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);

/** The text where no letter or digit goes on. */
const matchWholeWord = (text: string, flags: 'g' | 'gi'): RegExp =>
  new RegExp(String.raw`(?<![a-zA-Z0-9])${escapePattern(text)}(?![a-zA-Z0-9])`, flags);

/** Matches a shortened secret by its first twelve characters. */
const matchBeginning = (secret: string): RegExp =>
  new RegExp(String.raw`${escapePattern(secret.slice(0, 12))}[\w.*-]*`, 'g');

/** Matches the masked secret by its last two characters: `sk-...yz`. */
const matchMaskedEnd = (secret: string): RegExp =>
  new RegExp(String.raw`[\w-]*(?:\*+|\.{2,}|[…•])[\w-]{0,6}${escapePattern(secret.slice(-2))}(?![\w-])`, 'g');

/** Longest first: the name, and what remains without vendor, region and version, as vendors quote it. */
function namesOf(model: string): string[] {
  const names = new Set([model, encodeURIComponent(model), model.slice(model.lastIndexOf('/') + 1)]);
  for (const name of names) {
    const affixes = [/^[a-z-]+\./i, /:\d+$/, /-v\d+$/, /[-@]\d{8}$/, /-\d{4}-\d{2}-\d{2}$/, /-latest$/];
    for (const affix of affixes) names.add(name.replace(affix, ''));
  }
  return [...names].filter((name) => name.length > 2).toSorted((a, b) => b.length - a.length);
}

/**
 * A name that could be any word (`large`) counts only in quotes, or after `model` and the like. Other names count as
 * whole words in any case, with a version behind them.
 */
function modelNamePattern(name: string): RegExp {
  const literal = escapePattern(name);
  return ordinaryNames.has(name.toLowerCase())
    ? new RegExp(String.raw`(?<=["'\`]|\b(?:model|deployment|engine)s?[:=]?\s+)${literal}(?![a-z0-9-])`, 'gi')
    : new RegExp(String.raw`(?<![a-z0-9])${literal}(?:[-:@.]v?\d[\w]*)*(?![a-z0-9])`, 'gi');
}
