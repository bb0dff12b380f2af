/** The page around a form of a customer. */
import type { Field, Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import type { Visit } from '../../visit/visit.ts';
export const customerPath = (account: string): string => `customers/${encodeURIComponent(account)}`;

export interface FormPage {
  title: string;
  /** Undefined: of no customer yet. */
  account?: string;
  lead?: string;
  fields: readonly Field[];
  verb: string;
}

export function formPage({ identity, path }: Visit, tried: Tried | undefined, parts: FormPage): Page {
  const { title, account, lead, fields, verb } = parts;
  const back = account === undefined ? 'customers' : customerPath(account);
  return {
    title,
    section: 'customers',
    above: [['customers', 'Customers'], ...(account === undefined ? [] : [[back, account] as const])],
    body: html`${lead === undefined ? '' : html`<p class="lead">${lead}</p>`}
    ${ownForm(
      { path, identity },
      {
        fields,
        verb,
        cancel: back,
        tried,
      },
    )}`,
  };
}
