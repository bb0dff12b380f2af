// Runs at CloudFront for each request: finds the cell of the account that the host name begins with.
import cf from 'cloudfront';
import crypto from 'crypto';

// One host for each cell, in the order of app.ts.
var hosts = 'CELL_HOSTS'.split(',');

async function handler(event) {
  var request = event.request;
  var account = request.headers.host.value.split('.')[0].toLowerCase();
  var store = cf.kvs();
  // One character for each of 256 slots, `0` for the first cell. An account can have a cell of its own.
  var moved = await store.get('account:' + account).catch(() => undefined);
  var slots = await store.get('slots');
  var slot = parseInt(crypto.createHash('sha256').update(account).digest('hex').slice(0, 2), 16);
  var domainName = hosts[parseInt(moved || slots[slot], 36)];
  // CloudFront turns the error into a 503. Without a host name, the request would go to the first cell.
  if (domainName === undefined) throw new Error('no cell for slot ' + slot);
  cf.updateRequestOrigin({ domainName });
  request.headers['x-forwarded-host'] = { value: request.headers.host.value };
  return request;
}
