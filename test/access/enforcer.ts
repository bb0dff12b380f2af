/** Denies, as AWS does, the calls that the policy of their access key does not allow. */
import type { IncomingMessage } from 'node:http';
import type { Refusal } from '../support/fault-proxy.ts';
import { evaluate, type Access } from './policy-document.ts';
import { requestedAccess } from './requested-access.ts';
import { localStackId } from '../../shared/adapters/dynamodb/operator-store.ts';
import { account, type ManagedPolicy } from './template-policies.ts';

export class Enforcer {
  readonly #policies: ReadonlyMap<string, ManagedPolicy>;
  /** Permissions that allowed a call, by policy. */
  readonly used = new Map<string, Set<string>>();
  /** Denied calls. */
  denied: { policy: string; action: string; resource: string }[] = [];
  /** The policy for the single access key of a local target, which has no AWS keys. */
  localPolicy = '';

  constructor(policies: ReadonlyMap<string, ManagedPolicy>) {
    this.#policies = policies;
  }

  readonly refuse = (request: IncomingMessage, body: Buffer): Refusal | undefined => {
    const { accessKey, service, accesses } = requestedAccess(request, body);
    // Where a local stack has its log: no deployed stack has the item.
    if (accessKey === 'local' && body.includes(`"${localStackId}"`)) return undefined;
    const policy = accessKey === 'local' ? this.localPolicy : accessKey.replace('AKIA', '').toLowerCase();
    const statements = this.#policies.get(policy)?.statements ?? [];
    for (const access of accesses) {
      const decision = evaluate(statements, access);
      if (!decision.allowed) {
        this.denied.push({ policy, action: access.action, resource: access.resource });
        return refusalOf(service, messageOf(policy, access, decision.explicitly));
      }
      const used = this.used.get(policy) ?? new Set();
      this.used.set(policy, used);
      for (const permission of decision.by) used.add(permission);
    }
    return undefined;
  };
}

/** The message format of https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html */
const messageOf = (policy: string, { action, resource }: Access, explicitly: boolean): string =>
  `User: arn:aws:iam::${account}:user/${policy} is not authorized to perform: ${action} on resource: ${resource} ${
    explicitly
      ? 'with an explicit deny in an identity-based policy'
      : `because no identity-based policy allows the ${action} action`
  }`;

/** Each protocol has its own error format. */
function refusalOf(service: string, message: string): Refusal {
  if (service === 'cloudformation')
    return {
      status: 403,
      headers: { 'content-type': 'text/xml' },
      body: `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>${message}</Message></Error></ErrorResponse>`,
    };
  if (service === 'lambda' || service === 'bedrock')
    return {
      status: 403,
      headers: { 'content-type': 'application/json', 'x-amzn-errortype': 'AccessDeniedException' },
      body: JSON.stringify({ Message: message }),
    };
  const prefix = service === 'dynamodb' ? 'com.amazon.coral.service#' : '';
  return {
    status: 400,
    headers: { 'content-type': `application/x-amz-json-${service === 'dynamodb' ? '1.0' : '1.1'}` },
    body: JSON.stringify({ __type: `${prefix}AccessDeniedException`, Message: message }),
  };
}
