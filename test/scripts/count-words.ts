/**
 * Counts how plainly the product is written: functions that begin with a verb, names that are participles, comments that
 * begin with "What" or repeat a type, files without a header, words that the glossary replaces. It prints and never fails.
 * `node test/scripts/count-words.ts [--list verbs|participles|"participle phrases"|comments|types|headers|words] [FOLDER...]`
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { isProduct, readSources, type Source } from '../tidy/sources.ts';
import { isNode, nameOf, type SyntaxNode } from '../tidy/syntax.ts';
import { commonVerbs, irregularParticiples } from './verbs.ts';

const root = path.join(import.meta.dirname, '../..');
const { values, positionals } = parseArgs({
  options: { list: { type: 'string' } },
  allowPositionals: true,
});

/** Words that the glossary replaces, as a whole word of a name in camel case. */
const replacedWords = /^(part|parts|place|seal|rest|standing|handed|story|guess|held|begun|told)$/i;

const wordsOf = (name: string): string[] => name.match(/[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])/g) ?? [name];

function isFunction(node: unknown): boolean {
  return isNode(node) && /^(ArrowFunctionExpression|FunctionExpression)$/.test(node.type);
}

/** The name that a node gives to a function: a declaration, a constant, a method. */
function functionName(node: SyntaxNode): string | undefined {
  if (node.type === 'FunctionDeclaration') return nameOf(node['id']);
  if (node.type === 'VariableDeclarator' && isFunction(node['init'])) return nameOf(node['id']);
  if (node.type === 'MethodDefinition' && node['kind'] === 'method') return nameOf(node['key']);
  return undefined;
}

/** Names that a file declares at its top level or as a parameter, a member or a type. */
function declaredName(node: SyntaxNode): string | undefined {
  if (
    /^(FunctionDeclaration|VariableDeclarator|TSInterfaceDeclaration|TSTypeAliasDeclaration|ClassDeclaration)$/.test(
      node.type,
    )
  )
    return nameOf(node['id']);
  return /^(MethodDefinition|PropertyDefinition|TSPropertySignature|TSMethodSignature)$/.test(node.type)
    ? nameOf(node['key'])
    : undefined;
}

function isParticiple(word: string): boolean {
  if (commonVerbs.has(word)) return false;
  return irregularParticiples.has(word) || (/[a-z]{2}ed$/.test(word) && !/(eed|embed|speed)$/.test(word));
}

const commentsOf = (text: string): string[] =>
  [...text.matchAll(/^[ \t]*(?:\/\*\*?|\/\/)[ \t]*\n?[ \t]*\*?[ \t]*(\S.*)$/gm)].map(([, line = '']) => line);

const findings = new Map<string, string[]>(
  ['verbs', 'participles', 'participle phrases', 'comments', 'types', 'headers', 'words'].map((kind) => [
    kind,
    [],
  ]),
);
const note = (kind: string, { file }: Source, text: string): void =>
  void findings.get(kind)?.push(`${file}: ${text}`);

let functions = 0;
let projections = 0;

function countFile(source: Source): void {
  for (const { node } of source.places) {
    const called = functionName(node);
    if (called !== undefined) {
      functions += 1;
      const [first = ''] = wordsOf(called);
      if (isParticiple(first.toLowerCase()))
        note(first === called ? 'participles' : 'participle phrases', source, called);
      if (/[a-z]Of$/.test(called)) projections += 1;
      else if (!commonVerbs.has(first.toLowerCase())) note('verbs', source, called);
    }
    const declared = declaredName(node);
    if (declared !== undefined && wordsOf(declared).some((word) => replacedWords.test(word)))
      note('words', source, declared);
  }
  const comments = commentsOf(source.text);
  for (const comment of comments) {
    if (/^(What|Whose|Whoever|Whatever|Of|Whether|Which|Who)\b/.test(comment))
      note('comments', source, comment);
    if (/\b(Absent|Undefined|Null)( |:)/.test(comment.slice(0, 11))) note('types', source, comment);
    else if (/\. (Absent|Undefined):/.test(comment)) note('types', source, comment);
  }
  if (!/^(#!.*\n)?\/(\*\*|\/)/.test(source.text)) note('headers', source, 'no header');
}

const folders = positionals.length > 0 ? positionals : ['shared', 'functions', 'infra'];
for (const source of readSources(root, folders).filter(isProduct)) countFile(source);

const counted = (kind: string): number => findings.get(kind)?.length ?? 0;
const percent = (part: number): string => `${((100 * part) / functions).toFixed(1)} %`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
if (values.list !== undefined) for (const line of findings.get(values.list) ?? []) print(line);
else {
  const verbs = functions - projections - counted('verbs');
  print(`functions that begin with a verb  ${verbs} of ${functions}, ${percent(verbs)}`);
  print(`projections named xOf             ${projections}, ${percent(projections)}`);
  print(`functions named by a participle   ${counted('participles')}`);
  print(`functions that begin with one     ${counted('participle phrases')}`);
  print(`words that the glossary replaces  ${counted('words')}`);
  print(`comments beginning with What, Of  ${counted('comments')}`);
  print(`comments that repeat a type       ${counted('types')}`);
  print(`files without a header            ${counted('headers')}`);
}
