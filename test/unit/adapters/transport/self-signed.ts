import { generateKeyPairSync, sign } from 'node:crypto';

/** An untrusted certificate for 127.0.0.1, generated on the spot, so that the repository contains no key. */
export function selfSigned({ until = '20990101000000Z', address = [127, 0, 0, 1] } = {}): {
  key: string;
  cert: string;
} {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  // A unique name: OpenSSL looks for an issuer among trusted certificates by name, and takes the first.
  const own = Buffer.from(`loopback ${spki.subarray(-8).toString('hex')}`);
  const name = sequence(set(sequence(objectId('550403'), der(0x0c, own))));
  const validity = sequence(der(0x18, Buffer.from('20200101000000Z')), der(0x18, Buffer.from(until)));
  const loopback = der(0x87, Buffer.from(address));
  const alternativeName = sequence(objectId('551d11'), der(0x04, sequence(loopback)));
  const certificate = sequence(
    der(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    name,
    validity,
    name,
    spki,
    der(0xa3, sequence(alternativeName)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', certificate, privateKey)]);
  const signed = sequence(certificate, ecdsaWithSha256, der(0x03, signature));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${signed.toString('base64')}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, Buffer.concat(parts));
const set = (...parts: Buffer[]): Buffer => der(0x31, Buffer.concat(parts));
const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const objectId = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
