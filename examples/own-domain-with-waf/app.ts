/** A relay at a domain of yours, behind a web ACL that limits requests by address. */
import { App, Stack } from 'aws-cdk-lib';
import { Certificate, CertificateValidation } from 'aws-cdk-lib/aws-certificatemanager';
import { HostedZone } from 'aws-cdk-lib/aws-route53';
import { Relay } from 'relay';
import { RelayEdge } from 'relay/edge';

// Replace these five values.
const account = '123456789012';
const zone = { hostedZoneId: 'Z0123456789ABCDEFGHIJ', zoneName: 'example.com' };
const domainName = 'api.example.com';
const alarmEmail = 'ops@example.com';
const requestsPerMinute = 300;

// CloudFront reads certificates and web ACLs from us-east-1 only, so one region keeps this app short.
const env = { account, region: 'us-east-1' };
const app = new App();

const edge = new RelayEdge(app, { relayName: 'relay', region: env.region, requestsPerMinute });
const stack = new Stack(app, 'relay', { env, terminationProtection: true });
stack.node.addDependency(edge);

const hostedZone = HostedZone.fromHostedZoneAttributes(stack, 'Zone', zone);
const certificate = new Certificate(stack, 'Certificate', {
  domainName,
  validation: CertificateValidation.fromDns(hostedZone),
});

new Relay(stack, 'Relay', {
  domain: { name: domainName, certificate, hostedZone },
  webAclArn: edge.webAclArn,
  alarmEmail,
});

app.synth();
