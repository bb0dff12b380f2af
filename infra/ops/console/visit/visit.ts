/**
 * The input and routes of a page, the rights of roles, and actions from form to result: proposed, confirmed, carried out, shown.
 * The fields and the shown proposal are kept only until confirmation, and each action runs once, however often its button is
 * pressed. A secret appears in one answer and is never stored. This file does not use Hono, so pages are plain functions.
 */
import { Failure, type Plan } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { noteUndo, type UndoStep } from '../../../../shared/operate/undo.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { canonicalJson } from '../../../../shared/wire/json.ts';
import type { TableName } from '../../../../shared/tables/table-names.ts';
import { describeWrites, type FieldChange } from '../../fields/describe-changes.ts';
import type { Field } from '../../fields/row-field.ts';
import { renderForm, listUnassignedMarks, addMarks, type FieldMarks, type SentForm } from '../layout/form.ts';
import type { NanoYuan } from '../../../../shared/billing/money.ts';
import {
  roles,
  type ConsoleStore,
  type KeptText,
  type Role,
} from '../../../../shared/operate/hosted-console.ts';
import { renderWarnings, type Page, type ReadCost } from '../layout/frame.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';

/** The person behind a session; each login creates one. */
export interface Identity {
  /** Shown on each page. */
  name: string;
  /** Unguessable, and the same for the whole session: every form carries it. */
  formToken: string;
  role: Role;
}

/** A higher role has all rights of the lower ones. */
export const may = ({ role }: Pick<Identity, 'role'>, wanted: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(wanted);

export const chooseRequiredRole = (route: FormRoute | AnswerRoute): Role =>
  'answer' in route ? 'viewer' : (route.by ?? 'operator');

export const explainRefusal = ({ role }: Identity): string =>
  role === 'viewer' ? 'This console is read-only.' : `Your role (${role}) does not allow this.`;

export interface ConsoleOptions {
  /** Accepted Host headers such as `127.0.0.1:4711`; absent if checked before. */
  hosts?: readonly string[];
  /** The path of the console with both slashes: `/`, or one that only this session knows. */
  base: string;
  /** Names the tables, for people. */
  where: string;
}

/** Reads tables one request at a time and reports the cost. */
export type CountReads = <Found>(read: () => Promise<Found>) => Promise<{ found: Found; cost: ReadCost }>;

export interface Visit {
  ports: OperatorPorts;
  counted: CountReads;
  identity: Identity;
  /** `readOnly` if the person is no operator; `exports` if they may download everything. */
  options: ConsoleOptions & { readOnly: boolean; exports: boolean };
  nowMs: number;
  /** The path below the base, without the first slash, escaped as it was sent. */
  path: string;
  /** A parameter of the path, decoded. */
  readonly parameter: (name: string) => string;
  readonly query: (name: string) => string;
  readonly field: (name: string) => string;
  fields: Readonly<Record<string, string>>;
  /** The list over which the page is shown, and to which a result leads back. */
  list: string | undefined;
  /** Reads a result that was kept for this session. Undefined if it is gone. */
  readonly readResult: (id: string) => Promise<KeptResult | undefined>;
}

/** The lists and pages with rows. Other addresses could lead away from the console. */
const listPattern = /^(?:customers|keys|channels|charges|settings)(?:[/?][^#\\]*)?$/;

/**
 * Resolves the address as browsers do: otherwise dots could lead to other pages, and a line end would break the redirect after a write. Drops
 * the result of an earlier form, which would replace the next one.
 */
export function readList(address = ''): string | undefined {
  if (!listPattern.test(address)) return undefined;
  const url = new URL(address, 'http://console');
  if (url.searchParams.has('done')) url.searchParams.delete('done');
  const path = url.pathname.slice(1) + url.search;
  return listPattern.test(path) ? path : undefined;
}

/** The address of a page that is shown over a list. Scripts build the same for links with `data-drawer`. */
export const addListToAddress = (path: string, list: string | undefined): string =>
  list === undefined
    ? path
    : `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ list }).toString()}`;

/** `tried` is a form that was refused, to show it again. */
export type PageView = (visit: Visit, tried?: SentForm) => Promise<Page>;

export interface FormRoute {
  page: PageView;
  /** Throws a Failure whose message appears at the fields that it names. Writes nothing. */
  propose: (visit: Visit) => Promise<Proposal>;
  /** The lowest role that may use the form; only operators by default. Below operator, proposals must state `refunds`. */
  by?: Role;
}

/** A form that writes nothing is answered at once, for everyone who may read. */
export interface AnswerRoute {
  page: PageView;
  /** Throws a Failure, as `propose` does. */
  answer: (visit: Visit) => Promise<DirectAnswer>;
}

export interface DirectAnswer {
  title: string;
  back: string;
  outcome: Outcome;
}

/** `rows` adds to the table body with this id; otherwise the markup replaces the content of the element. */
export interface LiveFragment {
  id: string;
  rows?: true;
  markup: Markup;
}

export interface LiveLook {
  fragments: readonly LiveFragment[];
  /** Status, shown beside the button. */
  words: string;
  /** Epoch milliseconds; an interrupted watch continues from here. */
  nowMs: number;
}

export interface LiveView {
  everyMs: number;
  look(): Promise<LiveLook>;
}

/** Throws a Failure if the page cannot be live. */
export type Watch = (visit: Visit, sinceMs: number) => LiveView;

/** Pages register here. Paths are below the console's base. */
export interface Routes {
  page(path: string, view: PageView): void;
  /** `read` may take seconds and reads no table, such as a log search, so other pages are rendered meanwhile. */
  slowPage<Found>(
    path: string,
    read: (visit: Visit) => Promise<Found>,
    view: (visit: Visit, found: Found) => Promise<Page>,
  ): void;
  live(path: string, watch: Watch): void;
  form(path: string, route: FormRoute | AnswerRoute): void;
  /** Streams a file. A form asks for it, so that no other site can. */
  file(path: string, file: FileInput): void;
}

export interface FileInput {
  nameOf: (visit: Visit) => string;
  /** The media type, such as `text/csv`. */
  type: string;
  /** True if the file contains more than pages show: only people who may download everything get it. */
  isExport?: true;
  lines: (visit: Visit) => AsyncIterable<string>;
}

interface FormPageInput {
  title: string;
  above?: Page['above'];
  intro?: Content;
  fields?: readonly Field[];
  /** Shown at the fields that they name, else above the form. */
  marks?: FieldMarks;
  verb?: string;
  cancel?: string;
}

/** Leaves out empty parameters. */
export function buildPath(path: string, asked: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(asked).filter((each): each is [string, string] => Boolean(each[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

export const hideFromReaders = ({ options }: Visit, content: Content): Content =>
  options.readOnly ? nothing : content;

/** A page with one form, which is posted to the page's own address. */
export const buildFormPage =
  (
    composeForm: (visit: Visit, tried: SentForm | undefined) => FormPageInput | Promise<FormPageInput>,
  ): PageView =>
  async (visit, tried) => {
    const made = await composeForm(visit, tried);
    const { title, above = [], intro = '', fields = [], marks = {}, verb = 'Continue', cancel } = made;
    const list = visit.list ?? readList(tried?.fields['list']);
    const form = { fields: addMarks(fields, marks), verb, cancel: list ?? cancel, tried, list };
    return {
      title,
      above,
      fields,
      body: html`${renderWarnings(listUnassignedMarks(marks, fields))} ${intro}
      ${renderForm({ ...form, action: visit.path, formToken: visit.identity.formToken })}`,
    };
  };

export const customerPathOf = (account: string): string => `customers/${encodeURIComponent(account)}`;

export const renderCustomerLink = (account: string): Markup =>
  html`<a href="${customerPathOf(account)}" data-copy>${account}</a>`;

export interface Proposal {
  title: string;
  /** The path of the page that it came from, without the first slash. */
  back: string;
  effect: readonly string[];
  questions: readonly string[];
  warnings: readonly string[];
  /** The reason why it may be shown but not carried out. */
  refusal?: string | undefined;
  /** The changes of rows, field by field. */
  changes?: readonly FieldChange[];
  /** Shown before confirming, such as the impact of the changes. */
  details?: Markup;
  /** Must be equal at confirmation. */
  basis?: string;
  /** Set if the action only refunds this much. */
  refunds?: NanoYuan;
  verb: string;
  /** Disables something or moves money, so the button is coloured as a warning. */
  grave?: boolean;
  carryOut: () => Promise<Outcome>;
}

export type ActionEnd = { outcome: Outcome } | { error: unknown };

type ActionWords = Pick<Proposal, 'title' | 'back' | 'verb' | 'grave'>;

export const createProposal = (
  { effect, questions, warnings = [], refusal }: Plan<unknown>,
  words: ActionWords,
  carryOut: Proposal['carryOut'],
): Proposal => ({ ...words, effect, questions, warnings, refusal, carryOut });

/** A plan without changes may be shown but not carried out. */
export function proposeWrites(
  { ports }: Visit,
  plan: Plan<RowWrite>,
  { report, ...words }: ActionWords & { report: (made: RowWrite[]) => Outcome },
): Proposal {
  const isNothing = plan.changes.length === 0;
  const refusal = plan.refusal ?? (isNothing ? plan.effect[0] : undefined);
  const questions = isNothing ? [] : plan.questions;
  const shown = { ...plan, questions, ...(refusal !== undefined && { refusal }) };
  const proposal = createProposal(shown, words, async () => {
    const made = await carryOutWrites(ports, plan);
    if (made.length === 0)
      throw new Failure('nothing was saved: someone else changed this in the meantime. Reload and try again');
    return { next: linkRows(made), undo: await noteUndo(ports, made), ...report(made) };
  });
  return { ...proposal, ...showWrites(ports, plan.changes) };
}

/** A plan's effect leaves out values, so the writes themselves must be equal at confirmation. */
export const showWrites = (
  { target }: Pick<OperatorPorts, 'target'>,
  writes: readonly RowWrite[],
): Pick<Proposal, 'changes' | 'basis'> => ({
  changes: describeWrites(writes, target),
  basis: canonicalJson(writes),
});

const linkRows = (made: readonly RowWrite[]): [path: string, words: string][] =>
  made.slice(0, 3).flatMap((write) => {
    const row = 'row' in write ? write.row : write.key;
    const { [write.table]: link } = rowLinks;
    return link && write.kind !== 'remove' ? [link(row)] : [];
  });

const linkTo = (folder: string, name: unknown, words = String(name)): [string, string] => [
  `${folder}/${encodeURIComponent(String(name))}`,
  `Open ${words}`,
];

const rowLinks: Partial<Record<TableName, (row: RawRow) => [string, string]>> = {
  channels: ({ id }) => linkTo('channels', id),
  charges: ({ id }) => linkTo('charges', id, `rule ${String(id)}`),
  settings: ({ name }) => linkTo('settings', name),
  accounts: ({ account }) => linkTo('customers', account),
  keys: ({ hash }) => [`keys/${String(hash)}/edit`, 'Open the key'],
};

/** The id of what a form creates, so that a form that is sent twice creates it once. */
export const createFormId = ({ nowMs, ports }: Pick<Visit, 'nowMs' | 'ports'>): string =>
  `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${ports.random.hex(4)}`;

/** How long an action waits until a grant is applied. */
export const grantWaitMs = 10_000;

export interface Outcome {
  lines: readonly string[];
  warnings?: readonly string[];
  details?: Markup;
  /** Shown once and never stored. */
  secret?: { name: string; value: string };
  /** A file to save, with its keys. Only this answer contains it. */
  file?: { name: string; text: string; keys: readonly string[] };
  /** Lines ready to send to the customer; they may contain the secret. */
  message?: readonly string[];
  next?: readonly (readonly [path: string, words: string])[];
  /** The steps that undo the write. Empty if it can't be undone. */
  undo?: readonly UndoStep[];
}

/** A result without secrets. It is kept, so that the page that led to the action can show it, and Undo can use it. */
export type KeptResult = Pick<Outcome, 'lines' | 'warnings' | 'next' | 'undo'> &
  Pick<Proposal, 'back' | 'title' | 'changes'>;

/** A proposal as shown, in texts and markup. */
export type FrozenProposal = Omit<Proposal, 'carryOut' | 'refunds' | 'details'> & { details: string };

export interface PendingForm {
  id: string;
  path: string;
  fields: Readonly<Record<string, string>>;
  /** When its plan was made. */
  atMs: number;
  shown: FrozenProposal;
}

/** Keeps forms that wait for confirmation, for half an hour, each for its session alone. */
export type FormStore = Pick<ConsoleStore, 'keep' | 'read' | 'take'>;

export const formLifetimeMs = 30 * 60_000;
const formsMax = 100;

/** Keeps forms in this process. */
export function createMemoryForms({ clock, random }: Pick<OperatorPorts, 'clock' | 'random'>): FormStore {
  const all = new Map<string, KeptText & { atMs: number }>();
  const readForm = (owner: string, id: string): string | undefined => {
    const found = all.get(id);
    return found?.owner === owner && found.atMs > clock.now() - formLifetimeMs ? found.text : undefined;
  };
  return {
    async keep(text) {
      const id = random.hex(16);
      const [oldest = ''] = all.keys();
      if (all.size >= formsMax) all.delete(oldest);
      all.set(id, { ...text, atMs: clock.now() });
      return id;
    },
    read: async (owner, id) => readForm(owner, id),
    take: async (owner, id) => readForm(owner, id) !== undefined && all.delete(id),
  };
}
