/**
 * What configuration and operators need of a channel type: the attributes of its rows and their rules, its list of
 * models, the questions of `init`. Each type declares it beside its ChannelType, as an export of its own that no
 * function that answers imports: so the bundler leaves it out of those.
 */
import type { ChannelAttributes } from './channel-type.ts';
import type { ModelList } from './model-listing.ts';

export interface ChannelSetup<Own extends string = never> {
  /** The attributes of a row that this type alone has. */
  attributes: { readonly [name in Own]: OwnAttribute };
  /** The address of a row that writes none; absent or undefined: the row has to write one. */
  ownEndpoint?(channel: ChannelAttributes<Own>): string | undefined;
  /** What a row lacks or cannot have, each as `attribute: found ..., wanted ...`. */
  problems?(channel: ChannelAttributes<Own>, rules: { local: boolean }): string[];
  /** How its models are listed, or why they cannot be. */
  models: ModelList | { unlisted: string };
  /** What `init` asks for a first channel, in order. */
  questions: SetupQuestion<Own>[];
}

/** A text in rows of one type. */
export interface OwnAttribute {
  /** What it is, for the help of the CLI: `AWS region of the models`. */
  about: string;
  /** The end of `found ..., wanted ...`. */
  wanted: string;
  pattern: RegExp;
  /** The end of `only the type x has ...`, said of a row of another type. */
  named: string;
}

export interface SetupQuestion<Own extends string = never> {
  attribute: Own | 'endpoint';
  question: string;
  /** The answer of who only presses Enter. */
  usual?: string;
  /** true: with what was answered so far, this one is not asked. */
  needless?: (channel: ChannelAttributes<Own>) => boolean;
}
