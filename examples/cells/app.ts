/** Several relays behind one wildcard domain. A function at the edge sends each account to the cell that holds its balance. */
import { readFileSync } from 'node:fs';
import { App, CfnOutput, Duration, Fn, Stack } from 'aws-cdk-lib';
import { Certificate, CertificateValidation } from 'aws-cdk-lib/aws-certificatemanager';
import * as cloudfront from 'aws-cdk-lib/aws-cloudfront';
import { HttpOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import { ARecord, HostedZone, RecordTarget } from 'aws-cdk-lib/aws-route53';
import { CloudFrontTarget } from 'aws-cdk-lib/aws-route53-targets';
import { Relay } from 'relay';

// Replace these four values.
const account = '123456789012';
const zone = { hostedZoneId: 'Z0123456789ABCDEFGHIJ', zoneName: 'example.com' };
const domainName = '*.api.example.com';
const alarmEmail = 'ops@example.com';
/** Only append: the router knows a cell by its place. 36 at most. */
const cells = ['cell-a', 'cell-b'];

const env = { account, region: 'us-east-1' };
const app = new App();
const relays = cells.map((name) => {
  const stack = new Stack(app, name, { env, terminationProtection: true });
  return new Relay(stack, 'Relay', { name, frontDoor: 'api', alarmEmail });
});

const stack = new Stack(app, 'router', { env });
const hostedZone = HostedZone.fromHostedZoneAttributes(stack, 'Zone', zone);
const validation = CertificateValidation.fromDns(hostedZone);
// No deployment changes its content: the README has the commands.
const slots = new cloudfront.KeyValueStore(stack, 'Slots');
// `https://ID.execute-api.REGION.amazonaws.com/relay/v1` becomes its host.
const hosts = relays.map(({ baseUrl }) => Fn.select(2, Fn.split('/', baseUrl)));
const router = readFileSync(new URL('router.js', import.meta.url), 'utf8');

const edge = new cloudfront.Function(stack, 'Router', {
  code: cloudfront.FunctionCode.fromInline(router.replace('CELL_HOSTS', hosts.join(','))),
  runtime: cloudfront.FunctionRuntime.JS_2_0,
  keyValueStore: slots,
});

const distribution = new cloudfront.Distribution(stack, 'Distribution', {
  domainNames: [domainName],
  certificate: new Certificate(stack, 'Certificate', { domainName, validation }),
  defaultBehavior: {
    // The router replaces this origin's host.
    origin: new HttpOrigin(hosts[0] ?? '', { originPath: '/relay', readTimeout: Duration.seconds(120) }),
    allowedMethods: cloudfront.AllowedMethods.ALLOW_ALL,
    cachePolicy: cloudfront.CachePolicy.CACHING_DISABLED,
    originRequestPolicy: cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
    viewerProtocolPolicy: cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
    functionAssociations: [{ eventType: cloudfront.FunctionEventType.VIEWER_REQUEST, function: edge }],
  },
});
const target = RecordTarget.fromAlias(new CloudFrontTarget(distribution));
new ARecord(stack, 'Address', { zone: hostedZone, recordName: `${domainName}.`, target });
new CfnOutput(stack, 'SlotsArn', { value: slots.keyValueStoreArn });

app.synth();
