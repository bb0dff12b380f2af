/** Rules of IAM: sizes, which no schema adds up. */
import { policiesOfRole } from './policies.ts';
import { documentation, listOf, ofType, type ServiceRule } from './rule.ts';

const quotas = `${documentation}IAM/latest/UserGuide/reference_iam-quotas.html`;
const inlineMax = 10_240;
const managedMax = 6_144;
const trustMax = 2_048;
const attachedMax = 10;

/** As IAM counts: without white space. */
const lengthOf = (document: unknown): number => JSON.stringify(document ?? {}).length;

export const iamRules: ServiceRule[] = [
  {
    id: 'role-inline-size',
    types: ['AWS::IAM::Role'],
    kind: 'refused',
    source: quotas,
    check(role, context) {
      const managed = new Set(ofType(context, 'AWS::IAM::ManagedPolicy').map(({ id }) => id));
      const inline = policiesOfRole(role, context).filter(({ from }) => !managed.has(from ?? ''));
      const size = inline.reduce((sum, { document }) => sum + lengthOf(document), 0);
      if (size <= inlineMax) return undefined;
      return `LimitExceeded: Maximum policy size of ${inlineMax} bytes exceeded for role ${role.physicalId} (${size})`;
    },
  },
  {
    id: 'managed-policy-size',
    types: ['AWS::IAM::ManagedPolicy'],
    kind: 'refused',
    source: quotas,
    check({ properties }) {
      const size = lengthOf(properties['PolicyDocument']);
      if (size <= managedMax) return undefined;
      return `LimitExceeded: Cannot exceed quota for PolicySize: ${managedMax} (${size})`;
    },
  },
  {
    id: 'role-trust-size',
    types: ['AWS::IAM::Role'],
    kind: 'refused',
    source: quotas,
    check({ properties }) {
      const size = lengthOf(properties['AssumeRolePolicyDocument']);
      if (size <= trustMax) return undefined;
      return `LimitExceeded: Cannot exceed quota for ACLSizePerRole: ${trustMax} (${size})`;
    },
  },
  {
    id: 'role-attached',
    types: ['AWS::IAM::Role'],
    kind: 'refused',
    source: quotas,
    check(role, context) {
      const attached = ofType(context, 'AWS::IAM::ManagedPolicy').filter(({ properties }) =>
        listOf<string>(properties['Roles']).includes(role.physicalId),
      );
      const count = attached.length + listOf(role.properties['ManagedPolicyArns']).length;
      if (count <= attachedMax) return undefined;
      return `LimitExceeded: Cannot exceed quota for PoliciesPerRole: ${attachedMax} (${count})`;
    },
  },
];
