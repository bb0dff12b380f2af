/** A form that is sent to the page it stands on, by whom it was made for. */
import { form, type FormOf } from '../layout/form.ts';
import type { Markup } from '../layout/markup.ts';
import type { Visit } from './visit.ts';

export const ownForm = (
  { path, identity }: Pick<Visit, 'path' | 'identity'>,
  parts: Omit<FormOf, 'action' | 'formToken'>,
): Markup => form({ ...parts, action: path, formToken: identity.formToken });
