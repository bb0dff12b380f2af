/** Reads the text of elements in answers of AWS's query APIs. Never for documents of others: it knows no attributes. */

/** The text of the first element of this name that holds nothing but text. */
export function textOf(xml: string, element: string): string | undefined {
  const [, content] = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml) ?? [];
  return content?.replaceAll(
    /&(#x?[0-9a-f]+|[a-z]+);/gi,
    (whole, name: string) => characterOf(name) ?? whole,
  );
}

const named: Readonly<Record<string, string>> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' };

function characterOf(name: string): string | undefined {
  if (!name.startsWith('#')) return named[name];
  const code = Number(name.startsWith('#x') ? `0${name.slice(1)}` : name.slice(1));
  return code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}
