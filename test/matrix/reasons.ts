/**
 * Places whose loss is right, by rules. Whatever no rule has is carried, mended, named as dropped or refused, or the test
 * fails. A rule that nothing needs fails it too.
 */
import type { Dialect } from './endpoints.ts';

export interface Reason {
  /** Without it the rule holds for all. */
  endpoint?: Dialect;
  dialect?: Dialect;
  places: RegExp;
  why: string;
}

export const reasons: readonly Reason[] = [
  {
    places: /^(?:stream|stream_options\..*)$/,
    why: 'The relay reads every upstream as a stream and writes the answer as it was asked for.',
  },
  {
    places: /^(?:stop|stop_sequences)(?:\[\])?$/,
    why: 'The relay itself ends the text where the upstream has no such field.',
  },
  {
    places: /format\[text\]$|^tool_choice\[auto\]$|caller\[direct\]$/,
    why: 'It asks for what holds without it.',
  },
  {
    places: /^thinking\[(?:adaptive|between_tools)\]$|^(?:reasoning_effort|(?:.*\.)?reasoning\.effort)$/,
    why: 'The model decides whether it thinks where the form has no such word.',
  },
  {
    places:
      /^thinking\[\w+\]\.display$|^reasoning\.(?:summary|generate_summary|context)$|^include\[\]$|^store$/,
    why: 'The relay serves it: it shows and returns the reasoning, and stores the response if the key may.',
  },
  {
    places: /cache_control(?:\.ttl)?$/,
    why: 'Other vendors cache by themselves, and a cache changes no answer.',
  },
  {
    places: /\.(?:annotations|citations|logprobs)\[/,
    why: 'No model reads what an earlier answer had beside its text.',
  },
  {
    endpoint: 'messages',
    places: /source\[base64\]\.media_type$/,
    why: 'The bytes of a picture say its type.',
  },
  {
    dialect: 'messages',
    places: /json_schema\]?\.(?:name|strict)$/,
    why: 'The form of an answer is the schema alone there, and always strict.',
  },
  {
    endpoint: 'responses',
    places: /^input\[reasoning\](?:\.(?:summary|content)\b.*)?$/,
    why: 'A model reads only its encrypted content.',
  },
  {
    endpoint: 'responses',
    places: /\.(?:phase|async)$/,
    why: 'A phase orders what a client shows, and the tool of an asynchronous call says that it is one.',
  },
  {
    endpoint: 'responses',
    places: /output\]\.(?:name|namespace)$/,
    why: 'The call of the result has it.',
  },
  {
    endpoint: 'responses',
    places: /\.(?:id|status)$/,
    why: 'Ids and states of items are the relay’s own.',
  },
];

export const findReason = (at: { endpoint: Dialect; dialect: Dialect; path: string }): Reason | undefined =>
  reasons.find(
    ({ endpoint = at.endpoint, dialect = at.dialect, places }) =>
      endpoint === at.endpoint && dialect === at.dialect && places.test(at.path),
  );
