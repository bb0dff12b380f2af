/** What a page of the console is given: who asks, the ports, and what was asked. Holds no Hono, so pages are functions. */
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';

/** Who asks. Whoever puts the console behind a login makes one for each session. */
export interface Identity {
  /** Shown on each page. */
  name: string;
  /** Unguessable, and the same for the whole session: every form carries it. */
  formToken: string;
}

export interface ConsoleOptions {
  /** The values of the header Host that are answered: `127.0.0.1:4711`. */
  hosts: readonly string[];
  /** Where the console is, with both slashes: `/`, or a path that only this session knows. */
  base: string;
  readOnly: boolean;
  /** Which tables it works on, in words. */
  where: string;
}

export interface Visit {
  ports: OperatorPorts;
  identity: Identity;
  options: ConsoleOptions;
  nowMs: number;
  /** The path below the base, without the first slash, escaped as it was sent. */
  path: string;
  /** A part of the path, decoded. */
  readonly part: (name: string) => string;
  /** A parameter of the address. Empty: there is none. */
  readonly query: (name: string) => string;
  /** A field of the form that was sent, without blanks around it. Empty: there is none. */
  readonly field: (name: string) => string;
  /** The fields by name, to show a form again. */
  fields: Readonly<Record<string, string>>;
}
