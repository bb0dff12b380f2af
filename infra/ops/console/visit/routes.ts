/** What pages register: pages to read, and forms that lead to a proposal. Paths are below the console's base. */
import type { Tried } from '../layout/form.ts';
import type { Page } from '../layout/frame.ts';
import type { Proposal } from './proposals.ts';
import type { Visit } from './visit.ts';

/** Shows a page; with `tried`, the same page after its form was refused. */
export type PageView = (visit: Visit, tried?: Tried) => Promise<Page>;

export interface FormRoute {
  /** The form alone on its page, or the page that it is part of. */
  page: PageView;
  /** Throws a Failure, whose message is shown at the fields that it names. Writes nothing. */
  propose: (visit: Visit) => Promise<Proposal>;
  /** It writes nothing when it is carried out either, so a console that only reads has it. */
  reads?: boolean;
}

export interface Routes {
  page(path: string, view: PageView): void;
  form(path: string, route: FormRoute): void;
}
