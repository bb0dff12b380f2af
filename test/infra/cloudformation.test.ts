/** Deployments to CloudFormation's double, and its rules. They share a file because each worker that loads its engine of schemas computes a second more. */
import './service-rules.ts';
import './deployer-policy.ts';
import './published-template.ts';
import './validation.ts';
