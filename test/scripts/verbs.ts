/** Words by which `count-words.ts` decides what a name is. A word that is a noun as often as a verb counts as a verb. */
const listWords = (text: string): Set<string> => new Set(text.split(/\s+/).filter(Boolean));

export const commonVerbs = listWords(`
  abandon abort accept accepts acknowledge act adapt add adjust admit advance aggregate agrees align allow
  allows annotate answer append applies apply approve are arrange ask asks assemble assert assess assign
  attach attempt audit authenticate authorize await balance begin begins belongs bill bind block bound
  break buffer build bundle cache call calls can cancel carries carry cast catch change changes charge
  check choose claim classify clean clear clone close closes coerce collect combine commit compact compare
  compile complete compose compress compute confirm connect consume contain contains continues convert
  copy correct costs count counts cover covers create credit cut deal debit decide declare declares decode
  decompress decrypt deduct deduplicate defer define delay delete deliver deny deserialize deploy derive describe
  destroy detect determine diff differs discard discover dispatch display divide does download drain draw
  drop echo edit embed emit empty enable encode encrypt end ends enforce enqueue ensure enter enumerate equals
  escape estimate evaluate examine exceeds exchange exclude execute exists exit expand expect expire
  expires explain export extend extract fail fails fetch fill filter find finish fit fits flag flatten
  flush fold follow follows forbid forget format forward freeze gather generate get give glance grant
  group grow guard guess halve handle has hash have hide hint hold holds identify ignore import include
  includes increment index infer inflate inherit init inject insert inspect install interpret invalidate
  invoke is issue iterate join keep keeps kill label lack lacks launch learn leave limit linger link list listen
  lists load locate lock log look lookup lower make map mark mask match matches may means measure meet
  merge migrate mint mirror misses mix modify monitor mount move name names narrow needs negate normalise
  normalize note notify offer omit open order overdraws overwrite owns pack pad paint parse partition pass patch
  pause pay pays perform permit permits pick pin ping pipe place plan poll post prefix prepare prepend preserve
  prevent preview print probe process produce project promise propose prove provide prune publish pull
  push put query queue quote raise rank rate reach read reads rebuild receive recompute reconcile record
  recover redact redirect reduce refer refresh refund refuse refuses register reject release reload
  remember remove rename render renew reopen repair repeat replace replay reply report request require
  requires reserve reset resolve respond restore restrict resume retain retrieve retry return reuse reveal
  reverse revert revoke rewrite roll rotate round route run runs sample sanitize save say says scale scan
  schedule score scrub seal search seed select send sends separate serialize serve serves set settle shard
  share shift shorten should show shrink shut sign simulate skip sleep slice sort spawn speaks specify
  split spread stamp start starts stop store stores stream stringify strip submit subscribe subtract suggest sum
  summarize supply support supports suspend swap switch synthesise synthesize take takes tally tell
  terminate test throttle throw tick time trace track transact transform transition translate transmit trap trim
  truncate try tune turn unescape unpack unregister unseal unwrap update upgrade upload use uses validate
  verify view visit wait wake walk wants warn was watch widen withdraw works wrap write yield zip zoom
`);

/** Participles that do not end with -ed. */
export const irregularParticiples = listWords(`
  begun bound broken brought built caught chosen come done drawn driven fallen felt forgotten found frozen
  given gone held hidden kept known laid led left lent lost made meant overtaken paid ridden risen said
  seen sent shown sold spent spoken stolen struck sworn taken taught thought thrown told torn understood
  won worn written
`);
