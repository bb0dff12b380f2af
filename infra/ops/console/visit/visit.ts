/**
 * What a page of the console is given and registers, who may do what, and actions between their form and their end: proposed,
 * confirmed, carried out, shown. Between proposal and confirmation the fields are kept and what was shown, few and not for long;
 * each is carried out once, however often its button is pressed. Secrets of a result are in one answer, and kept nowhere. Holds
 * no Hono, so pages are functions.
 */
import { Failure, type Plan } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts, RowWrite } from '../../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import type { Field } from '../../fields/row-field.ts';
import { form, marksElsewhere, withMarks, type FieldMarks, type SentForm } from '../layout/form.ts';
import type { NanoYuan } from '../../../../shared/billing/price.ts';
import {
  roles,
  type ConsoleStore,
  type KeptText,
  type Role,
} from '../../../../shared/operate/hosted-console.ts';
import { warnings, type Page, type ReadCost } from '../layout/frame.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';

/** Who asks. Whoever puts the console behind a login makes one for each session. */
export interface Identity {
  /** Shown on each page. */
  name: string;
  /** Unguessable, and the same for the whole session: every form carries it. */
  formToken: string;
  role: Role;
}

/** Of these two the first has all rights of the second. */
export const may = ({ role }: Pick<Identity, 'role'>, wanted: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(wanted);

/** Who may see and send a form. */
export const neededFor = (route: FormRoute | AskingRoute): Role =>
  'answer' in route ? 'viewer' : (route.by ?? 'operator');

export const refusedWords = ({ role }: Identity): string =>
  role === 'viewer' ? 'This console is read-only.' : `Your role (${role}) does not allow this.`;

export interface ConsoleOptions {
  /** The values of the header Host that are answered: `127.0.0.1:4711`. Absent: it was checked before. */
  hosts?: readonly string[];
  /** Where the console is, with both slashes: `/`, or a path that only this session knows. */
  base: string;
  /** Which tables it works on, in words. */
  where: string;
}

/** Reads tables when it is its turn, and says what that took. */
export type Counted = <Found>(read: () => Promise<Found>) => Promise<{ found: Found; cost: ReadCost }>;

export interface Visit {
  ports: OperatorPorts;
  counted: Counted;
  identity: Identity;
  /** `readOnly`: whoever asks is no operator. `exports`: they may take everything along as a file. */
  options: ConsoleOptions & { readOnly: boolean; exports: boolean };
  nowMs: number;
  /** The path below the base, without the first slash, escaped as it was sent. */
  path: string;
  /** A part of the path, decoded. */
  readonly part: (name: string) => string;
  readonly query: (name: string) => string;
  readonly field: (name: string) => string;
  /** The fields by name, to show a form again. */
  fields: Readonly<Record<string, string>>;
}

/** Shows a page; with `tried`, the same page after its form was refused. */
export type PageView = (visit: Visit, tried?: SentForm) => Promise<Page>;

export interface FormRoute {
  /** The form alone on its page, or the page that it is part of. */
  page: PageView;
  /** Throws a Failure, whose message is shown at the fields that it names. Writes nothing. */
  propose: (visit: Visit) => Promise<Proposal>;
  /** Who may, with all that may more; absent: operators alone. Their proposals say what they return to the customer. */
  by?: Role;
}

/** A form that writes nothing: it is answered at once, for everybody who may read. */
export interface AskingRoute {
  page: PageView;
  /** Throws a Failure, as `propose` does. */
  answer: (visit: Visit) => Promise<Answered>;
}

export interface Answered {
  title: string;
  back: string;
  outcome: Outcome;
}

/** `rows`: new ones of the table whose body has this id. Otherwise it takes the place of what the element holds. */
export interface LivePart {
  id: string;
  rows?: true;
  markup: Markup;
}

export interface LiveLook {
  parts: readonly LivePart[];
  /** How the watch is, in a few words beside its button. */
  words: string;
  /** Epoch milliseconds: a watch that breaks off goes on from here. */
  nowMs: number;
}

export interface Watched {
  everyMs: number;
  look(): Promise<LiveLook>;
}

/** Begins to watch what ends after a time. Throws a Failure for what cannot be watched. */
export type Watch = (visit: Visit, sinceMs: number) => Watched;

/** What pages register: pages to read, and forms that lead to a proposal. Paths are below the console's base. */
export interface Routes {
  page(path: string, view: PageView): void;
  /** `read`: what may take seconds and reads no table, such as a search of the log. Other pages are made meanwhile. */
  slowPage<Found>(
    path: string,
    read: (visit: Visit) => Promise<Found>,
    view: (visit: Visit, found: Found) => Promise<Page>,
  ): void;
  /** Parts of a page, made again while somebody watches it. */
  live(path: string, watch: Watch): void;
  form(path: string, route: FormRoute | AskingRoute): void;
  /** A file that is made while it is sent, of this name. Asked for by a form, so that no other page can. It writes nothing. */
  file(path: string, name: string, lines: (visit: Visit) => AsyncIterable<string>): void;
}

interface FormParts {
  title: string;
  above?: Page['above'];
  intro?: Content;
  fields?: readonly Field[];
  /** Of the row: at the fields that they name, else above all. */
  marks?: FieldMarks;
  verb?: string;
  cancel?: string;
}

/** The address of a page with what is asked for, without what is empty. */
export function pathWith(path: string, asked: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(asked).filter((each): each is [string, string] => Boolean(each[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

/** What a console that only reads does not show. */
export const unlessReading = ({ options }: Visit, content: Content): Content =>
  options.readOnly ? nothing : content;

/** A page that is a form alone. It is sent to where it stands, by whom it was made for. */
export const formPage =
  (partsOf: (visit: Visit, tried: SentForm | undefined) => FormParts | Promise<FormParts>): PageView =>
  async (visit, tried) => {
    const made = await partsOf(visit, tried);
    const { title, above = [], intro = '', fields = [], marks = {}, verb = 'Continue', cancel } = made;
    const parts = { fields: withMarks(fields, marks), verb, cancel, tried };
    return {
      title,
      above,
      body: html`${warnings(marksElsewhere(marks, fields))} ${intro}
      ${form({ ...parts, action: visit.path, formToken: visit.identity.formToken })}`,
    };
  };

export const customerPath = (account: string): string => `customers/${encodeURIComponent(account)}`;

export const customerLink = (account: string): Markup =>
  html`<a href="${customerPath(account)}">${account}</a>`;

export interface Proposal {
  title: string;
  /** The path of the page that it came from, without the first slash. */
  back: string;
  effect: readonly string[];
  questions: readonly string[];
  warnings: readonly string[];
  /** Why it may be shown but not carried out. */
  refusal?: string | undefined;
  /** More to see before one agrees: differences of rows, what they would have made of the last days. */
  details?: Markup;
  /** What of that has to be the same when it is confirmed. */
  basis?: string;
  /** It returns this much to a customer, and does nothing else. */
  refunds?: NanoYuan;
  verb: string;
  /** It switches something off, or moves money: the button says so by its colour. */
  grave?: boolean;
  carryOut: () => Promise<Outcome>;
}

export type Ended = { outcome: Outcome } | { error: unknown };

type Words = Pick<Proposal, 'title' | 'back' | 'verb' | 'grave'>;

/** What a plan says of itself, and how it is carried out. */
export const proposed = (
  { effect, questions, warnings = [], refusal }: Plan<unknown>,
  words: Words,
  carryOut: Proposal['carryOut'],
): Proposal => ({ ...words, effect, questions, warnings, refusal, carryOut });

/** A plan that has nothing to write may be shown, not carried out. */
export function proposedWrites(
  { ports }: Visit,
  plan: Plan<RowWrite>,
  { said, ...words }: Words & { said: (made: RowWrite[]) => Outcome },
): Proposal {
  const isNothing = plan.changes.length === 0;
  const refusal = plan.refusal ?? (isNothing ? plan.effect[0] : undefined);
  const questions = isNothing ? [] : plan.questions;
  return proposed({ ...plan, questions, ...(refusal !== undefined && { refusal }) }, words, async () => {
    const made = await carryOutWrites(ports, plan);
    if (made.length === 0) throw new Failure('nothing was saved: somebody else changed this first');
    return said(made);
  });
}

/** How long an action waits until a grant is applied. */
export const appliedWaitMs = 10_000;

export interface Outcome {
  lines: readonly string[];
  warnings?: readonly string[];
  details?: Markup;
  /** Shown once, then forgotten. */
  secret?: { name: string; value: string };
  /** Lines ready to send to the customer, which may contain it. */
  message?: readonly string[];
  next?: readonly (readonly [path: string, words: string])[];
}

/** A proposal as it was shown, in texts and markup. */
export type ShownProposal = Omit<Proposal, 'carryOut' | 'refunds' | 'details'> & { details: string };

/** A form that waits for its confirmation. */
export interface KeptForm {
  id: string;
  path: string;
  fields: Readonly<Record<string, string>>;
  /** When its plan was made. */
  atMs: number;
  shown: ShownProposal;
}

/** Texts of half an hour, each of one session alone: forms that wait. */
export type KeptForms = Pick<ConsoleStore, 'keep' | 'kept' | 'take'>;

export const keptForMs = 30 * 60_000;
const keptMax = 100;

/** Of one process. */
export function memoryForms({ clock, random }: Pick<OperatorPorts, 'clock' | 'random'>): KeptForms {
  const all = new Map<string, KeptText & { atMs: number }>();
  const kept = (owner: string, id: string): string | undefined => {
    const found = all.get(id);
    return found?.owner === owner && found.atMs > clock.now() - keptForMs ? found.text : undefined;
  };
  return {
    async keep(text) {
      const id = random.hex(16);
      const [oldest = ''] = all.keys();
      if (all.size >= keptMax) all.delete(oldest);
      all.set(id, { ...text, atMs: clock.now() });
      return id;
    },
    kept: async (owner, id) => kept(owner, id),
    take: async (owner, id) => kept(owner, id) !== undefined && all.delete(id),
  };
}
