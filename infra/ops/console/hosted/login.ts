/**
 * Identifies a person by an OpenID Connect issuer: authorization code with PKCE, by the library `openid-client`, which checks the
 * ID token's signature, issuer, audience, nonce and times. Nothing else of the answer counts, and no token is kept.
 */
import * as oidc from 'openid-client';
import type { RelayConsole } from '../../../stack/constructs/hosted-console.ts';
import type { Clock } from '../../../../shared/relay/ports/host.ts';
import { roles, type ConsoleSession, type Role } from '../../../../shared/operate/hosted-console.ts';

type Person = Omit<ConsoleSession, 'formToken'>;
export type Login = ReturnType<typeof createOidcLogin>;

interface LoginDeps {
  options: RelayConsole;
  secretOf: (reference: string) => Promise<string>;
  /** An issuer on this machine has no certificate. */
  isLocal: boolean;
  clock: Pick<Clock, 'now'>;
}

const answerSeconds = 5;
/** Waits this long before it asks a failed issuer again, because everyone who waits, known or not, holds a function. */
const failedMs = 15_000;
const skewSeconds = 30;

export function createOidcLogin({ options, secretOf, isLocal, clock }: LoginDeps) {
  const { issuer, clientId, clientSecret, scopes = ['openid', 'email', 'profile'] } = options.oidc;
  let found: Promise<oidc.Configuration> | undefined;
  let failedUntilMs = Infinity;
  const discover = async (): Promise<oidc.Configuration> =>
    oidc.discovery(
      new URL(issuer),
      clientId,
      { client_secret: await secretOf(clientSecret), [oidc.clockTolerance]: skewSeconds },
      undefined,
      {
        timeout: answerSeconds,
        // Without this the library would trust TLS alone.
        execute: [oidc.enableNonRepudiationChecks, ...(isLocal ? [oidc.allowInsecureRequests] : [])],
      },
    );
  const loadConfiguration = (): Promise<oidc.Configuration> => {
    if (clock.now() >= failedUntilMs) [found, failedUntilMs] = [undefined, Infinity];
    return (found ??= discover().catch((error: unknown) => {
      failedUntilMs = clock.now() + failedMs;
      throw error;
    }));
  };
  return {
    /** Also returns what must come back with the code, and the verifier that proves that it is ours. */
    async begin(callback: string) {
      const verifier = oidc.randomPKCECodeVerifier();
      const loginState = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier };
      const address = oidc.buildAuthorizationUrl(await loadConfiguration(), {
        redirect_uri: callback,
        scope: scopes.join(' '),
        state: loginState.state,
        nonce: loginState.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return { address, loginState };
    },
    /** Throws unless this is a login of this client with this state. */
    async end(
      callback: URL,
      { state, nonce, verifier }: Record<'state' | 'nonce' | 'verifier', string>,
    ): Promise<Person> {
      const tokens = await oidc.authorizationCodeGrant(await loadConfiguration(), callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      // An issuer for many tenants names each of them, and only ours counts.
      if (!claims || trimSlash(claims.iss) !== trimSlash(issuer)) throw new Error('another issuer');
      return personOf(claims, options);
    },
  };
}

const trimSlash = (address: string): string => address.replace(/\/$/, '');

function personOf(
  claims: oidc.IDToken,
  { oidc: { groupsClaim = 'groups' }, roles: given }: RelayConsole,
): Person {
  const { sub, email, email_verified: isVerified } = claims;
  const named = new Set(Object.values(given).flat());
  const groups = [claims[groupsClaim] ?? []].flat().filter((each) => typeof each === 'string');
  return {
    // Some issuers let people write any address into their profile.
    name: typeof email === 'string' && isVerified === true ? email.toLowerCase() : `sub:${sub}`,
    groups: groups.filter((group) => named.has(group)),
  };
}

/** The highest role given to this address or to one of these groups; a name with an @ is an address. */
export const roleOf = ({ name, groups }: Person, given: RelayConsole['roles']): Role | undefined =>
  roles.findLast((role) =>
    given[role]?.some((each) => (each.includes('@') ? each.toLowerCase() === name : groups.includes(each))),
  );
