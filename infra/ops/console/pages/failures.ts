/** Pages for what did not work out: expected failures say what to do, others say nothing of the inside. */
import type { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { Page } from '../layout/frame.ts';
import { html } from '../layout/markup.ts';
import { sectionOf } from './section-of.ts';
import { notice } from '../layout/notice.ts';

const statuses = { 1: 409, 2: 404, 3: 403 } as const;

/** Of a page that cannot be shown. */
export function failurePage({ message, exitCode }: Failure, path: string): Page {
  const section = sectionOf(path);
  return {
    title: exitCode === 3 ? 'Not allowed' : 'Not found, or not possible',
    section,
    body: html`${notice('bad', message)}
      <p><a href="${section === '' ? './' : section}">Back to the list</a></p>`,
    status: statuses[exitCode],
  };
}

export const faultPage = (): Page => ({
  title: 'A mistake of this console',
  section: '',
  body: html`${notice(
      'bad',
      'Something went wrong that should not. What it was stands in the terminal that started the console.',
    )}
    <p><a href="./">To the overview</a></p>`,
  status: 500,
});

export const missingPage = (): Page => ({
  title: 'There is no such page',
  section: '',
  body: html`<p><a href="./">To the overview</a></p>`,
  status: 404,
});

export const notePage = (status: number, words: string): Page => ({
  title: 'Not done',
  section: '',
  body: html`${notice('bad', words)}
    <p><a href="./">To the overview</a></p>`,
  status,
});
