import { describe, expect, it } from 'vitest';
import { dialectPaths } from '../../../shared/upstreams/dialects/dialects.ts';
import { findEndpointProblem } from '../../../shared/upstreams/endpoint-rules.ts';

const refused = (endpoint: string, local = false) => findEndpointProblem(endpoint, { local }, dialectPaths);

describe("the relay's own address", () => {
  const problem = (endpoint: string, ownHost: string, local = false) =>
    findEndpointProblem(endpoint, { local, ownHost }, dialectPaths);

  it.each([
    ['https://api.relay.example/v1', 'api.relay.example', false],
    ['https://API.relay.example.:443/v1', 'api.relay.example', false],
    ['http://127.0.0.1:8787/v1', '127.0.0.1:8787', true],
    ['http://localhost:8787/v1', '127.0.0.1:8787', true],
    ['http://[::1]:8787/v1', '127.0.0.1:8787', true],
  ])('%s is rejected as an upstream', (endpoint, ownHost, local) => {
    expect(problem(endpoint, ownHost, local)).toBe(
      'found the address of this relay itself, expected an upstream',
    );
  });

  it.each([
    ['https://api.relay.example:8443/v1', 'api.relay.example', false],
    ['https://relay.example/v1', 'api.relay.example', false],
    ['http://127.0.0.1:8788/v1', '127.0.0.1:8787', true],
  ])('%s is a different host', (endpoint, ownHost, local) => {
    expect(problem(endpoint, ownHost, local)).toBeUndefined();
  });
});

describe('a channel may call', () => {
  it.each([
    'https://api.openai.com/v1',
    'https://api.openai.com:8443/v1/',
    'https://generativelanguage.googleapis.com/v1beta/openai',
    'https://8.8.8.8/v1',
    'https://172.32.0.1/v1',
    'https://100.128.0.1/v1',
    'https://[2606:4700::1111]/v1',
    'https://[2001:4860:4860::8888]:8443/v1',
    'https://192.0.66.1/v1',
    'https://api.example.com./v1',
    'https://api.example.com:81/v1',
  ])('%s', (endpoint) => {
    expect(refused(endpoint)).toBeUndefined();
  });

  it.each([
    'http://127.0.0.1:9000/v1',
    'http://localhost:9000/v1',
    'http://[::1]:9000/v1',
    'https://localhost/v1',
    'https://localhost./v1',
    'https://LOCALHOST/v1',
    'https://relay.localhost/v1',
    'https://127.1/v1',
    'https://2130706433/v1',
    'https://0x7f.1/v1',
    'https://0177.0.0.1/v1',
    'https://127.0.0.1./v1',
    'https://127.255.255.254:8443/v1',
    'https://１２７.0.0.1/v1',
    'https://[0:0:0:0:0:0:0:1]/v1',
  ])('%s on a local stack, and nowhere else', (endpoint) => {
    expect(refused(endpoint, true)).toBeUndefined();
    expect(refused(endpoint)).toMatch(/this machine itself/);
  });
});

describe.each([false, true])('a channel may not call (local: %s)', (local) => {
  it.each([
    ['a host on a private network', 'https://10.0.0.1/v1'],
    ['a host on a private network', 'https://172.16.5.5/v1'],
    ['a host on a private network', 'https://172.31.255.255/v1'],
    ['a host on a private network', 'https://192.168.1.1/v1'],
    ['a host behind carrier-grade NAT', 'https://100.64.0.1/v1'],
    ['the metadata service', 'https://169.254.169.254/latest'],
    ['the metadata service of containers', 'https://169.254.170.2/v2'],
    ['the metadata service as one number', 'https://2852039166/latest'],
    ['the metadata service in hex', 'https://0xA9FEA9FE/latest'],
    ['the metadata service in octal', 'https://0251.0376.0251.0376/latest'],
    ['the metadata service over IPv6', 'https://[fd00:ec2::254]/latest'],
    ['the metadata service by name', 'https://metadata.google.internal/'],
    ['the metadata service with a trailing dot', 'https://169.254.169.254./latest'],
    ['the metadata service in mixed spelling', 'https://0xa9.254.0250.0376/latest'],
    ['the metadata service inside IPv6', 'https://[::ffff:169.254.169.254]/latest'],
    ['the metadata service inside IPv6, in hex', 'https://[::ffff:a9fe:a9fe]/latest'],
    ['the metadata service inside IPv6, the oldest form', 'https://[::169.254.169.254]/latest'],
    ['the metadata service on another port', 'https://169.254.169.254:8443/latest'],
    ['this network', 'https://0.0.0.0/v1'],
    ['this network, short', 'https://0/v1'],
    ['no address in IPv6', 'https://[::]/v1'],
    ['this machine inside IPv6', 'https://[::ffff:127.0.0.1]/v1'],
    ['a host on a private network with a trailing dot', 'https://10.0.0.1./v1'],
    ['a host on a private network, short', 'https://10.1/v1'],
    ['a host on a private network as one number', 'https://167772161/v1'],
    ['an address for documentation', 'https://203.0.113.7/v1'],
    ['an address for benchmarks', 'https://198.18.0.1/v1'],
    ['a private IPv6 host', 'https://[fc00::1]/v1'],
    ['an IPv6 multicast', 'https://[ff02::1]/v1'],
    ['an IPv6 address for documentation', 'https://[2001:db8::1]/v1'],
    ['an IPv6 address for special purposes', 'https://[2001:20::1]/v1'],
    ['a newer IPv6 address for documentation', 'https://[3fff:1::1]/v1'],
    ['an IPv6 host with a zone', 'https://[fe80::1%25eth0]/v1'],
    ['a public IPv6 host with a zone', 'https://[2606:4700::1111%25eth0]/v1'],
    ['multicast', 'https://224.0.0.1/v1'],
    ['broadcast', 'https://255.255.255.255/v1'],
    ['a link-local IPv6 host', 'https://[fe80::1]/v1'],
    ['an IPv4 address inside IPv6', 'https://[::ffff:10.0.0.1]/v1'],
    ['an IPv4 address inside 6to4', 'https://[2002:a00:1::]/v1'],
    ['an IPv4 address inside Teredo', 'https://[2001:0:a00:1::]/v1'],
    ['an IPv4 address inside NAT64', 'https://[64:ff9b::a00:1]/v1'],
    ['a host without a domain', 'https://gateway/v1'],
    ['a host of the local network', 'https://printer.local./v1'],
    ['this machine by its longer name', 'https://localhost.localdomain/v1'],
    ['a host inside a cluster', 'https://ip-10-0-0-1.ec2.internal/v1'],
    ['a public host over http', 'http://api.openai.com/v1'],
    ['a private host over http', 'http://10.0.0.1/v1'],
    ['another protocol', 'ftp://api.openai.com/v1'],
    ['a file', 'file:///etc/passwd'],
    ['an invalid address', 'api.openai.com/v1'],
    ['the endpoint itself instead of its base', 'https://api.openai.com/v1/chat/completions/'],
  ])('%s: %s', (_case, endpoint) => {
    expect(refused(endpoint, local)).toMatch(/^found /);
  });

  it.each([
    'https://api.openai.com/v1?key=topsecret',
    'https://api.openai.com/v1#topsecret',
    'https://me:topsecret@api.openai.com/v1',
    'https://topsecret@127.0.0.1/v1',
  ])('an address that contains a credential is rejected, without repeating it: %s', (endpoint) => {
    const problem = refused(endpoint, local);
    expect(problem).toMatch(/^found /);
    expect(problem).not.toContain('topsecret');
  });
});

it('an empty query is rejected too', () => {
  expect(refused('https://api.openai.com/v1?')).toMatch(/^found a \? or #/);
});
