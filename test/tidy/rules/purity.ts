/** What code may reach: the core sees no clock, no random, no environment and no network; nobody prints from it. */
import { isProduct, within, type Source } from '../sources.ts';
import { isMemberName, isNode, nameOf, propertyOf, textOf, variablesOf, type Place } from '../syntax.ts';

const core = ['tables', 'wire', 'stream', 'endpoints', 'upstreams', 'billing', 'config', 'relay', 'operate'];

/** What no code of the core names, not even to hand it on. */
const reaching = new Set(
  (
    'process performance fetch setTimeout setInterval setImmediate crypto globalThis global self window navigator ' +
    'console Temporal WebSocket EventSource XMLHttpRequest require'
  ).split(' '),
);

/** Globals of which the core uses these members alone. */
const partly: Record<string, RegExp> = {
  Date: /^(parse|UTC)$/,
  Math: /^(?!random$)/,
  AbortSignal: /^(any|abort)$/,
};

/** `Date` in `new Date(atMs)` and in `x instanceof Date` reads no clock. */
const isPure = ({ parent, role }: Place): boolean =>
  (parent.type === 'NewExpression' && (parent['arguments'] as unknown[]).length > 0) ||
  (parent.type === 'BinaryExpression' && parent['operator'] === 'instanceof' && role === 'right');

function reachOf(place: Place): string | undefined {
  const name = nameOf(place.node) ?? '';
  if (reaching.has(name)) return name;
  const allowed = Object.hasOwn(partly, name) ? partly[name] : undefined;
  if (allowed === undefined) return undefined;
  if (place.parent.type !== 'MemberExpression') return isPure(place) ? undefined : name;
  const member = propertyOf(place.parent);
  return member !== undefined && allowed.test(member) ? undefined : `${name}.${member}`;
}

export const impureCore = (sources: Source[]): string[] =>
  sources
    .filter(({ folder }) => core.some((name) => within(folder, `shared/${name}`)))
    .flatMap((source) => {
      const found = variablesOf(source.places).map(reachOf);
      return [...new Set(found)]
        .filter((each) => each !== undefined)
        .map((each) => `${source.file} uses ${each}`);
    });

// In halves, so that this file does not find itself.
const halves = [
  'TO|DO',
  'FIX|ME',
  'X|XX',
  '@ts-|ignore',
  '@ts-|expect-error',
  'as |any\\b',
  ': |any\\b',
  '\\.on|ly\\(',
];
const loose = new RegExp(halves.map((half) => half.replace('|', '')).join('|'));

export const looseEnds = (sources: Source[]): string[] =>
  sources.filter(({ text }) => loose.test(text)).map(({ file }) => file);

/** The global `console`, and the streams of a process however they are reached. A member may have that name. */
const isPrinting = (place: Place): boolean => {
  const { node } = place;
  const isGlobal = isNode(node['object']) && /^global(This)?$/.test(nameOf(node['object']) ?? '');
  return (
    /^(stdout|stderr)$/.test(nameOf(node) ?? textOf(node) ?? '') ||
    (nameOf(node) === 'console' && !isMemberName(place)) ||
    (isGlobal && propertyOf(node) === 'console') ||
    /^(node:)?console$/.test(textOf(node['source']) ?? '')
  );
};

export function printing(sources: Source[], printers: Record<string, string>): string[] {
  const found = sources.filter((source) => isProduct(source) && source.places.some(isPrinting));
  return [
    ...found
      .filter(({ file }) => !Object.keys(printers).some((each) => file.startsWith(each)))
      .map(({ file }) => file),
    ...Object.keys(printers)
      .filter((each) => !found.some(({ file }) => file.startsWith(each)))
      .map((each) => `${each} needs no leave to print`),
  ];
}

const opened = ['shared/relay', 'shared/adapters', 'shared/upstreams', 'shared/operate', 'infra/ops'];

/** Each file of these folders says first what it is for, before its imports. */
export const unopened = (sources: Source[]): string[] =>
  sources
    .filter(({ folder }) => opened.some((name) => within(folder, name)))
    .filter(({ text }) => !/^(#!.*\n)?\/\*\*\s+(\*\s+)?\w/.test(text))
    .map(({ file }) => file);
