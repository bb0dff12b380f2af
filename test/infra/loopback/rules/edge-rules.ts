/** Rules of CloudFront and of the firewall before it. */
import { textOf } from '../template.ts';
import { documentation, listOf, recordOf, type ServiceRule } from './rule.ts';

const cloudFront = `${documentation}AmazonCloudFront/latest/DeveloperGuide/`;
const edgeRegion = 'us-east-1';
/** CloudFront sets these itself, or sends none that begin so. */
const deniedHeaders =
  /^(x-amz-.*|x-edge-.*|cache-control|connection|content-length|cookie|host|if-.*|max-forwards|pragma|proxy-.*|range|request-range|te|trailer|transfer-encoding|upgrade|via|x-real-ip)$/i;
const headersMax = 30;
const headerValueMax = 1_783;
const originTimeoutMaxSeconds = 120;

const configOf = (properties: Record<string, unknown>) => recordOf(properties['DistributionConfig']);
const originsOf = (properties: Record<string, unknown>) => listOf(configOf(properties)['Origins']);

export const edgeRules: ServiceRule[] = [
  {
    id: 'acl-region',
    types: ['AWS::WAFv2::WebACL', 'AWS::WAFv2::IPSet', 'AWS::WAFv2::RuleGroup'],
    kind: 'refused',
    source: `${documentation}AWSCloudFormation/latest/TemplateReference/aws-resource-wafv2-webacl.html`,
    check({ properties }, { region }) {
      if (properties['Scope'] !== 'CLOUDFRONT' || region === edgeRegion) return undefined;
      return `WAFInvalidParameterException: Error reason: The scope is not valid., field: SCOPE_VALUE, parameter: CLOUDFRONT (in ${region}; it is there only in ${edgeRegion})`;
    },
  },
  {
    id: 'acl-scope',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}distribution-web-awswaf.html`,
    check({ properties }) {
      const acl = configOf(properties)['WebACLId'];
      if (
        acl === undefined ||
        acl === '' ||
        /^arn:aws:wafv2:us-east-1:\d{12}:global\/webacl\//.test(textOf(acl))
      )
        return undefined;
      return `InvalidWebACLId: ${textOf(acl)} is no web ACL of scope CLOUDFRONT`;
    },
  },
  {
    id: 'certificate-region',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}cnames-and-https-requirements.html`,
    check({ properties }) {
      const arn = recordOf(configOf(properties)['ViewerCertificate'])['AcmCertificateArn'];
      if (arn === undefined || textOf(arn).startsWith(`arn:aws:acm:${edgeRegion}:`)) return undefined;
      return `InvalidViewerCertificate: The specified SSL certificate doesn't exist, isn't in ${edgeRegion} region, isn't valid, or doesn't include a valid certificate chain.`;
    },
  },
  {
    id: 'alias-certificate',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}CNAMEs.html`,
    check({ properties }) {
      const { Aliases, ViewerCertificate } = configOf(properties);
      const certificate = recordOf(ViewerCertificate);
      if (
        listOf(Aliases).length === 0 ||
        'AcmCertificateArn' in certificate ||
        'IamCertificateId' in certificate
      )
        return undefined;
      return 'InvalidViewerCertificate: To add an alternate domain name (CNAME) to a CloudFront distribution, you must attach a trusted certificate';
    },
  },
  {
    id: 'alias-taken',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}CNAMEs.html`,
    check({ properties, type }, { account, stackId }) {
      const names = listOf<string>(configOf(properties)['Aliases']);
      const taken = account.standing.find(
        (other) =>
          other.type === type &&
          other.owner !== stackId &&
          listOf<string>(configOf(other.properties)['Aliases']).some((name) => names.includes(name)),
      );
      if (taken === undefined) return undefined;
      return `CNAMEAlreadyExists: One or more of the CNAMEs you provided are already associated with a different resource (${taken.physicalId})`;
    },
  },
  {
    id: 'origin-timeout',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}DownloadDistValuesOrigin.html#DownloadDistValuesOriginResponseTimeout`,
    check({ properties }) {
      const seconds = originsOf(properties).flatMap(({ CustomOriginConfig: origin }) => [
        Number(recordOf(origin)['OriginReadTimeout'] ?? 30),
        Number(recordOf(origin)['OriginKeepaliveTimeout'] ?? 5),
      ]);
      const wrong = seconds.find((value) => value < 1 || value > originTimeoutMaxSeconds);
      if (wrong === undefined) return undefined;
      return `InvalidOriginReadTimeout: ${wrong} s; 1 to ${originTimeoutMaxSeconds} without a raised quota`;
    },
  },
  {
    id: 'origin-headers',
    types: ['AWS::CloudFront::Distribution'],
    kind: 'refused',
    source: `${cloudFront}add-origin-custom-headers.html`,
    check({ properties }) {
      for (const { OriginCustomHeaders } of originsOf(properties)) {
        const headers = listOf<{ HeaderName: string; HeaderValue: string }>(OriginCustomHeaders);
        if (headers.length > headersMax)
          return `TooManyOriginCustomHeaders: ${headers.length}, at most ${headersMax}`;
        const wrong = headers.find(
          ({ HeaderName, HeaderValue }) =>
            deniedHeaders.test(HeaderName) || HeaderValue.length > headerValueMax,
        );
        if (wrong !== undefined)
          return `InvalidArgument: the custom header ${wrong.HeaderName} is one that CloudFront does not add, or is over ${headerValueMax} characters`;
      }
      return undefined;
    },
  },
];
