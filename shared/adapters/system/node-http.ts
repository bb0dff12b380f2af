/**
 * Reads `node:http` without undici, for programs that run from their sources. An `import` of `node:http` reads all its exports, one
 * of which loads undici: 40 ms of each start.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
