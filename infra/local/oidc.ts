/**
 * A double of an OpenID Connect issuer, for the console on this machine: a page to choose who one is, codes that work once and
 * with the right verifier, and signed ID tokens. Tests let it say what no issuer should.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenOnFreePort } from './host/loopback.ts';
import { createServer } from '../../shared/adapters/system/node-http.ts';

export interface LocalIssuer {
  issuer: string;
  close(): Promise<void>;
}

export interface IssuerOptions {
  clientId: string;
  clientSecret: string;
  /** Claims by the name that a person chooses. */
  people: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Makes of a token's claims what is sent in its place. */
  tokenOf?: (claims: Claims, signToken: (claims: object, header?: object) => string) => string;
}

export type Claims = Record<'iss' | 'aud' | 'sub' | 'nonce', string> & Record<'iat' | 'exp', number>;

interface Code {
  nonce: string;
  challenge: string;
  redirect: string;
  name: string;
}

export async function startIssuer(options: IssuerOptions): Promise<LocalIssuer> {
  const { clientId, clientSecret, people, tokenOf = (claims, signed) => signed(claims) } = options;
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const codes = new Map<string, Code>();
  let issuer = '';
  const signClaims = (claims: object, header: object = { alg: 'RS256', kid: 'local' }): string => {
    const content = [header, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${content}.${sign('sha256', Buffer.from(content), privateKey).toString('base64url')}`;
  };

  const authorize = (query: URLSearchParams): Reply => {
    const readQuery = (name: string): string => query.get(name) ?? '';
    const isOurs = readQuery('client_id') === clientId && readQuery('response_type') === 'code';
    if (!isOurs || readQuery('code_challenge_method') !== 'S256' || !loopback.test(readQuery('redirect_uri')))
      return replyWithPage(400, '<p>This is not a console request.</p>');
    const name = readQuery('as');
    if (!Object.hasOwn(people, name)) return replyWithPage(200, renderChoices(query, Object.keys(people)));
    const code = randomBytes(16).toString('hex');
    const redirect = readQuery('redirect_uri');
    codes.set(code, { nonce: readQuery('nonce'), challenge: readQuery('code_challenge'), redirect, name });
    const back = new URL(redirect);
    for (const [key, value] of Object.entries({ code, state: readQuery('state'), iss: issuer }))
      back.searchParams.set(key, value);
    return { status: 303, headers: { location: back.href }, body: '' };
  };

  const exchangeCode = (form: URLSearchParams): Reply => {
    const found = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isRight =
      form.get('client_id') === clientId &&
      form.get('client_secret') === clientSecret &&
      found?.redirect === form.get('redirect_uri') &&
      found?.challenge === verifier;
    if (!found || !isRight) return replyWithJson(400, { error: 'invalid_grant' });
    const { name, nonce } = found;
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: clientId, sub: name, nonce, iat, exp: iat + 300, ...people[name] };
    return replyWithJson(200, {
      access_token: randomBytes(16).toString('hex'),
      token_type: 'Bearer',
      expires_in: 300,
      id_token: tokenOf(claims, signClaims),
    });
  };

  const answer = async (request: IncomingMessage): Promise<Reply> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    if (pathname === '/.well-known/openid-configuration') return replyWithJson(200, describeIssuer(issuer));
    if (pathname === '/keys')
      return replyWithJson(200, {
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'local', alg: 'RS256' }],
      });
    if (pathname === '/authorize') return authorize(searchParams);
    if (pathname === '/token') return exchangeCode(new URLSearchParams(await text(request)));
    return replyWithPage(404, '<p>Not found.</p>');
  };
  const server = createServer((request, response) => {
    answer(request).then(
      ({ status, headers, body }) => response.writeHead(status, headers).end(body),
      () => response.destroy(),
    );
  });
  const { endpoint, close } = await listenOnFreePort(server);
  issuer = endpoint;
  return { issuer, close };
}

interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const loopback = /^http:\/\/127\.0\.0\.1:\d+\//;
const replyWithJson = (status: number, value: object): Reply => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
});
const replyWithPage = (status: number, body: string): Reply => ({
  status,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body: `<!doctype html><html lang="en"><title>Local issuer</title>${body}</html>`,
});

/** Names are those of the caller, and addresses have no characters that markup reads. */
const renderChoices = (query: URLSearchParams, names: readonly string[]): string =>
  `<h1>Who are you?</h1><ul>${names
    .map(
      (name) =>
        `<li><a href="/authorize?${new URLSearchParams([...query, ['as', name]]).toString().replaceAll('&', '&amp;')}">${name}</a></li>`,
    )
    .join('')}</ul>`;

const describeIssuer = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
});
