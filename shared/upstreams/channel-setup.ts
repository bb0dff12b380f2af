/**
 * What configuration and operators need of a channel type: the attributes of its rows and their rules, its
 * list of models, the questions of `init`. Each type exports it separately from its ChannelType. Functions
 * that answer requests do not import it, so the bundler leaves it out of them.
 */
import type { ChannelAttributes } from './channel-type.ts';
import type { ModelList } from './model-listing.ts';

export interface ChannelSetup<Own extends string = never> {
  /** The attributes that only rows of this type have. */
  attributes: { readonly [name in Own]: OwnAttribute };
  /** The address of a row without `endpoint`. Absent or undefined: the row must have one. */
  ownEndpoint?(channel: ChannelAttributes<Own>): string | undefined;
  /** An address in the form that the version before this one reads in snapshots. Absent: it is the same. */
  storedEndpoint?(endpoint: string): string;
  /** The problems of a row of this type, each as `attribute: found ..., wanted ...`. */
  problems?(channel: ChannelAttributes<Own>, rules: { local: boolean }): string[];
  /** How its models are listed, or why they cannot be listed. */
  models: ModelList | { unlisted: string };
  /** The questions of `init` for a first channel, in order. */
  questions: SetupQuestion<Own>[];
}

/** A text attribute that only rows of some types have. */
export interface OwnAttribute {
  /** The description in the CLI's help, such as `AWS region of the models`. */
  about: string;
  /** The end of the message `found ..., wanted ...`. */
  wanted: string;
  pattern: RegExp;
  /** The end of the message `only the type x has ...` for a row of another type. */
  named: string;
}

/** Shared by the types whose API has versions. */
export const apiVersionAttribute: OwnAttribute = {
  about: 'version of the API',
  wanted: 'a version such as "2024-10-21"',
  pattern: /^[a-z0-9][a-z0-9-]{0,39}$/,
  named: 'versions',
};

export interface SetupQuestion<Own extends string = never> {
  attribute: Own | 'endpoint';
  question: string;
  /** The default answer, used if the operator only presses Enter. */
  usual?: string;
  /** Returns true if the earlier answers make this question unnecessary. */
  needless?: (channel: ChannelAttributes<Own>) => boolean;
}
