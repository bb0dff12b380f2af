/** Sets an entry of a bounded map as the newest, and drops the oldest above the maximum: a full map must not forget the entries in use. */
export function keepNewest<Key, Value>(map: Map<Key, Value>, max: number, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
