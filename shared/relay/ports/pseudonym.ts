/**
 * The name under which upstreams know an account's name for an end user or a cache. The same for the same account and
 * name, at most 64 characters, and nothing of the name can be read from it.
 */
export type Pseudonym = (account: string, name: string) => string;
