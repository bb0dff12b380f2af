/** Sets an entry as the newest of a bounded map, and deletes the oldest above the maximum. Clearing a full map would also forget recent ones. */
export function keepNewest<Key, Value>(map: Map<Key, Value>, max: number, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
