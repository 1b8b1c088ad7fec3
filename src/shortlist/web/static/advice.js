// What an event can expect, before its first vote. The numbers are those of docs/guides/public.md, from simulated events.

const GAPS = [60, 69, 77, 88] // % of votes that the last item in wins against the first one out
const JUDGES = [20, 50, 100, 200]
// By items and k: the share of events that end with a proof for 50, 100 and 200 judges, at each of the gaps (20 judges: at 88 % alone),
const PROVED = {
  '8,1': [.26, [0, .13, .59, 1], [.04, .59, .93, 1], [.27, .97, 1, 1]],
  '8,3': [0, [0, 0, 0, .13], [0, .06, .32, .92], [.03, .72, 1, 1]],
  '12,1': [.15, [0, .12, .59, .99], [.04, .68, .97, 1], [.34, .97, 1, 1]],
  '12,3': [0, [0, 0, 0, .05], [.01, .03, .2, .83], [.03, .62, .98, 1]],
  '12,5': [0, [0, 0, 0, 0], [0, 0, .01, .19], [0, .12, .84, .99]],
  '30,1': [0, [0, 0, 0, 0], [0, .12, .35, .6], [.23, .93, .97, 1]],
  '30,3': [0, [0, 0, 0, 0], [0, 0, 0, 0], [0, .12, .38, .75]],
  '30,5': [0, [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, .03, .1]],
}
// Votes until a proof about each judge, at 60 % and at 69 %.
const VOTES = {
  '8,1': [722, 370], '8,3': [1248, 610], '12,1': [870, 430], '12,3': [1634, 840], '12,5': [2135, 1120],
  '30,1': [1343, 900], '30,3': [3065, 1930], '30,5': [4533, 2660],
}

// One sentence or two for people who set up a study; empty if nothing was simulated that is like it.
export function advice(items, k, judges, claim) {
  const size = [8, 12, 30].find((most) => items <= most), small = [1, 3, 5].find((most) => Math.min(k, items - k) <= most)
  if (!size || !small || !(judges > 0) || k < 1 || k >= items) return ''
  const key = PROVED[`${size},${small}`] ? `${size},${small}` : `${size},3`
  return claim === 'public' ? aboutPublic(key, judges) : aboutJudges(key, judges)
}

function aboutPublic(key, judges) {
  const column = JUDGES.findLastIndex((least) => judges >= least)
  const shares = column > 0 ? PROVED[key][column] : [0, 0, 0, column < 0 ? 0 : PROVED[key][0]]
  const gap = GAPS[shares.findIndex((share) => share >= .5)]
  const soon = 'The likely answer comes much sooner than a proof: show it as a best guess.'
  if (!gap) return `With ${judges} judges of 10 pairs each, expect the likely answer and no proof. ${soon}`
  return `With ${judges} judges of 10 pairs each, expect a proof if the last item that is in wins at least ${gap} % of votes against the first `
    + `one that is out. ${soon}`
}

function aboutJudges(key, judges) {
  const each = (votes) => `about ${votes.toLocaleString()} votes in all, ${Math.ceil(votes / judges).toLocaleString()} for each of ${judges} judges`
  const [near, far] = VOTES[key]
  return `Expect ${each(far)}, if the last item that is in wins 69 % of votes against the first one that is out; at 60 %, ${each(near)}. `
    + 'The likely answer comes much sooner than a proof.'
}
