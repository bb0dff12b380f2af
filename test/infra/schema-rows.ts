/** What CloudFormation's schemas of resource types refuse, a row for each kind of mistake. */
import type { DeployedTemplate } from './loopback/template.ts';
import { find, propertiesOf } from './rule-rows.ts';

export interface SchemaRow {
  what: string;
  says: string;
  change: (template: DeployedTemplate) => void;
}

export const schemaRows: SchemaRow[] = [
  ['a function name of 65 characters', 'Lambda::Function', 'FunctionName', 'x'.repeat(65), '#/FunctionName'],
  ['a role name of 65 characters', 'IAM::Role', 'RoleName', 'x'.repeat(65), '#/RoleName'],
  ['a bucket name in upper case', 'S3::Bucket', 'BucketName', 'Relay-Failures', '#/BucketName'],
  ['a bucket name of 64 characters', 'S3::Bucket', 'BucketName', 'x'.repeat(64), '#/BucketName'],
  ['memory below 128 MB', 'Lambda::Function', 'MemorySize', 64, '#/MemorySize'],
  ['a misspelt property', 'Lambda::Function', 'MemorySiz', 256, "'MemorySiz' was unexpected"],
  ['a retention that CloudWatch does not know', 'Logs::LogGroup', 'RetentionInDays', 31, '#/RetentionInDays'],
  ['an invoke mode that Lambda does not know', 'Lambda::Url', 'InvokeMode', 'STREAM', '#/InvokeMode'],
  ['the URL of a version', 'Lambda::Url', 'Qualifier', '3', '#/Qualifier'],
].map(([what, type, property, value, says]) => ({
  what: String(what),
  says: String(says),
  change: (template) => {
    propertiesOf(template, String(type))[String(property)] = value;
  },
})) as SchemaRow[];

schemaRows.push({
  what: 'a function without a role',
  says: "'Role' is a required property",
  change: (template) => {
    delete find(template, 'Lambda::Function')[1].Properties?.['Role'];
  },
});
