/** The files that pages load, by names that change with their content. Only these exist: no path leads to a folder. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { sharedStyle } from '../../../shared/relay/page/page-style.ts';
import { consoleStyle } from './layout/console-style.ts';

export interface StaticFile {
  type: string;
  body: string;
}

export interface StaticFiles {
  /** By the path below the base. */
  files: ReadonlyMap<string, StaticFile>;
  style: string;
  scripts: readonly string[];
}

export function readStaticFiles(): StaticFiles {
  const plots = path.join(path.dirname(createRequire(import.meta.url).resolve('uplot/package.json')), 'dist');
  const files = new Map<string, StaticFile>();
  const add = (name: string, type: string, body: string): string => {
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
    const [stem, ending] = name.split('.');
    const address = `static/${stem}.${hash}.${ending}`;
    files.set(address, { type, body });
    return address;
  };
  const style = add(
    'console.css',
    'text/css; charset=utf-8',
    [sharedStyle, readFileSync(path.join(plots, 'uPlot.min.css'), 'utf8'), consoleStyle].join('\n'),
  );
  const script = 'text/javascript; charset=utf-8';
  const scripts = [
    add('uplot.js', script, knownLanguage + readFileSync(path.join(plots, 'uPlot.iife.min.js'), 'utf8')),
    add('enhance.js', script, readFileSync(new URL('enhance.js', import.meta.url), 'utf8')),
  ];
  return { files, style, scripts };
}

/** uPlot asks for number formats of the browser's language when it is loaded, and stops where that is none: `en-US@posix`. */
const knownLanguage = `
try { new Intl.NumberFormat(navigator.language); }
catch { Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true }); }
`;
