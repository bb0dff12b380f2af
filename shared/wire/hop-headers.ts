/**
 * On requests to upstreams: the ids of the relays that the call passed, oldest first. Of our own making, because proxies
 * and vendors rewrite `via`, and refuse requests by it.
 */
export const hopHeader = 'x-relay-hop';

/** On a refusal because of a loop, so that the relay before this one can name the cause without reading the body. */
export const loopHeader = 'x-relay-loop';
