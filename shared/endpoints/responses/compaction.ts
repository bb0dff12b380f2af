/** What a client does that wants OpenAI's compaction: Codex does where it believes to speak to OpenAI. */
export const compactByClient =
  'Codex compacts by itself if the name of its model provider in config.toml is not "OpenAI".';
