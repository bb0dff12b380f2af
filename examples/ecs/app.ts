/** A relay whose calls are answered by servers on Fargate, for loads at which servers cost less than functions. */
import { App, Stack } from 'aws-cdk-lib';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { Repository } from 'aws-cdk-lib/aws-ecr';
import { Relay } from 'relay';

// Replace these four values.
const env = { account: '123456789012', region: 'us-east-1' };
const alarmEmail = 'ops@example.com';
/** Two zones that CloudFront's VPC origins reach: any but use1-az3, usw1-az2, apne1-az3, apne2-az1 and cac1-az3. */
const zones = ['use1-az1', 'use1-az6'];
/** A repository of yours with an arm64 image of the same version. Empty builds it with Docker when you deploy. */
const repositoryName: string = '';

const app = new App();
const stack = new Stack(app, 'relay', { env, terminationProtection: true });

const repository = repositoryName && Repository.fromRepositoryName(stack, 'Image', repositoryName);
const image = repository ? { image: ContainerImage.fromEcrRepository(repository, '0.1.0') } : {};

new Relay(stack, 'Relay', {
  compute: 'ecs',
  service: { zones, tasksMin: 2, tasksMax: 10, ...image },
  alarmEmail,
});

app.synth();
