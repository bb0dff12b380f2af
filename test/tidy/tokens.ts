/** Splits a source into comments, strings and code, well enough for rules about words and names. */

export interface Token {
  kind: 'code' | 'comment' | 'string' | 'template' | 'pattern';
  text: string;
}

const comment = /\/\*[^]*?\*\/|\/\/[^\n]*/y;
const quoted = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;
const pattern = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const code = /[^'"`/{}]+|[^]/y;
const templatePart = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{|$)/y;

/** A slash begins a regular expression where a value may begin. */
const valueMayBegin = /(?:^|[(,=:[!&|?{};<>+]|=>|\breturn)\s*$/;

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  /** For each open template: how many braces are open in its current expression. */
  const open: number[] = [];
  let at = 0;
  const take = (shape: RegExp): string | undefined => {
    shape.lastIndex = at;
    const found = shape.exec(text)?.[0];
    if (found) at += found.length;
    return found;
  };
  const add = (kind: Token['kind'], part: string): void => void tokens.push({ kind, text: part });
  const addTemplatePart = (): void => {
    const part = String(take(templatePart));
    add('template', part.replace(/(?:`|\$\{)$/, ''));
    if (part.endsWith('${')) open.push(0);
  };
  const before = (): string => tokens.findLast(({ kind }) => kind !== 'comment')?.text.slice(-12) ?? '';
  while (at < text.length) {
    const start = text[at];
    const found =
      start === '/'
        ? (take(comment) ?? (valueMayBegin.test(before()) ? take(pattern) : undefined))
        : take(quoted);
    if (found) add(start !== '/' ? 'string' : /^\/[/*]/.test(found) ? 'comment' : 'pattern', found);
    else if (start === '`') {
      at += 1;
      addTemplatePart();
    } else if (start === '}' && open.at(-1) === 0) {
      at += 1;
      open.pop();
      addTemplatePart();
    } else {
      if (start === '{' && open.length > 0) open.push(Number(open.pop()) + 1);
      if (start === '}' && open.length > 0) open.push(Number(open.pop()) - 1);
      add('code', String(take(code)));
    }
  }
  return tokens;
}
