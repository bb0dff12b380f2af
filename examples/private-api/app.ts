/** A relay that only your own network can call: API Gateway inside a VPC, and functions in its private subnets. */
import { App, Stack } from 'aws-cdk-lib';
import {
  GatewayVpcEndpointAwsService,
  InterfaceVpcEndpointAwsService,
  IpAddresses,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Relay } from 'relay';

// Replace these three values.
const env = { account: '123456789012', region: 'eu-central-1' };
const alarmEmail = 'ops@example.com';
/** Other networks that reach this VPC, by peering or a transit gateway, must not overlap with it. */
const cidr = '10.20.0.0/16';

const app = new App();
const stack = new Stack(app, 'relay', { env, terminationProtection: true });

// To use a VPC that exists: Vpc.fromLookup(stack, 'Vpc', { vpcId: 'vpc-...' }).
const vpc = new Vpc(stack, 'Vpc', { ipAddresses: IpAddresses.cidr(cidr), maxAzs: 2, natGateways: 1 });
// Without this endpoint, reads and writes of tables would go through the NAT gateway, which bills each GB.
vpc.addGatewayEndpoint('Tables', { service: GatewayVpcEndpointAwsService.DYNAMODB });
const door = vpc.addInterfaceEndpoint('Door', { service: InterfaceVpcEndpointAwsService.APIGATEWAY });

new Relay(stack, 'Relay', {
  frontDoor: 'private-api',
  vpcEndpointIds: [door.vpcEndpointId],
  vpc,
  vpcSubnets: { subnetType: SubnetType.PRIVATE_WITH_EGRESS },
  alarmEmail,
});

app.synth();
