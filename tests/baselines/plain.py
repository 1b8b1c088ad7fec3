"""The baselines a second time, slow and plain, from the papers' pseudo-code, drawing in the order of the fast ones."""

import math


class Coins:
    """Flips of a Generator, counted."""

    def __init__(self, rng):
        self.rng, self.flips = rng, 0

    def flip(self, p):
        self.flips += 1
        return bool(self.rng.random() < p)

    def meet_somebody(self, wins, i):
        others = [j for j in range(len(wins)) if j != i]
        return self.flip(wins[i][others[int(self.rng.random() * len(others))]])


def di_limit(eps, delta):
    return math.ceil(2 * math.log(4 / delta) / eps**2)


def di_width(t, delta):
    return math.sqrt(math.log((math.pi * t) ** 2 / 3 / delta) / t / 2)


def di(coins, p, eps, s_up, s_down, delta):
    heads = 0
    for t in range(1, di_limit(eps, delta) + 1):
        heads += coins.flip(p)
        lean = heads / t - 0.5
        if lean > s_up + di_width(t, delta):
            return "up"
        if lean < -s_down - di_width(t, delta):
            return "down"
    return "up" if lean > s_up + eps / 2 else "down" if lean < -s_down - eps / 2 else "mid"


def sort_out(coins, beats, items, v, eps, s, delta):
    said = {i: "mid" if i == v else None for i in items}
    for i in items:
        if i != v:
            said[i] = di(coins, beats(i, v), eps, s, s, delta)
    middle = [v] + [i for i in items if i != v and said[i] == "mid"]
    return [i for i in items if said[i] == "up"], middle, [i for i in items if said[i] == "down"]


def eqs(coins, beats, items, k, eps, delta):
    taken = []
    while len(items) > k - len(taken):
        n = len(items)
        v = items[coins.rng.integers(n)]
        up, mid, down = sort_out(coins, beats, items, v, eps / 2, 0, delta / n / (n - 1))
        delta = delta * (n - 1) / n
        if len(up) > k - len(taken):
            items = up
        elif len(up) + len(mid) >= k - len(taken):
            return taken + (up + mid)[: k - len(taken)]
        else:
            taken, items = taken + up + mid, down
    return taken + items


def tks(coins, beats, items, k, eps, delta):
    step = 1
    while len(items) > k:
        winners = []
        for number in range(math.ceil(len(items) / (2 * k))):
            group = items[2 * k * number : 2 * k * (number + 1)]
            each = 6 * delta / math.pi**2 / step**2 / k
            winners += group if len(group) <= k else eqs(coins, beats, group, k, 0.25 * eps * 0.8**step, each)
        items, step = winners, step + 1
    return items


def seeks(wins, k, delta, rng, select=tks):
    coins, inside, open_items, step = Coins(rng), [], list(range(len(wins))), 1
    while True:
        third, each = 2.0**-step / 3, 6 * delta / math.pi**2 / step**2 / 3
        missing = k - len(inside)
        best = select(coins, lambda i, j: wins[i][j], open_items, missing, third, each)
        [v] = tks(coins, lambda i, j: wins[j][i], best, 1, third, each)
        others = len(open_items) - 1
        up, open_items, _ = sort_out(coins, lambda i, j: wins[i][j], open_items, v, third, third, each / others)
        inside, step = inside + up, step + 1
        if len(inside) >= k or len(inside) + len(open_items) <= k:
            return sorted((inside + open_items)[:k]), coins.flips


def alpha(t, n, delta):
    d = delta / n
    beta = math.log(1 / d) + 0.75 * math.log(math.log(1 / d)) + 1.5 * math.log(1 + math.log(t / 2))
    return math.sqrt(beta / (2 * t))


def active_ranking(wins, k, delta, rng, c):
    n, coins = len(wins), Coins(rng)
    active, m, t, won, inside = list(range(n)), k, 0, [0] * n, []
    while 0 < m < len(active):
        t += 1
        for i in active:
            won[i] += coins.meet_somebody(wins, i)
        active = sorted(active, key=lambda i: -won[i])
        mean = {i: won[i] / t for i in active}
        line_in, line_out, width = mean[active[m - 1]], mean[active[m]], c * alpha(t, n, delta)
        accepted = [i for i in active if mean[i] > line_out + width]
        rejected = [i for i in active if mean[i] < line_in - width]
        inside, m = inside + accepted, m - len(accepted)
        active = [i for i in active if i not in accepted and i not in rejected]
    return sorted(inside + (active if m else [])), coins.flips


def borda_lucb(wins, k, delta, rng):
    n, coins = len(wins), Coins(rng)
    won, times = [coins.meet_somebody(wins, i) for i in range(n)], [1] * n
    top = sorted(range(n), key=lambda i: -won[i])[:k]
    while True:
        mean = [won[i] / times[i] for i in range(n)]
        width = [alpha(times[i], n, delta) for i in range(n)]
        top = sorted(range(n), key=lambda i: (-mean[i], i not in top, i))[:k]
        d1 = min(sorted(top), key=lambda i: mean[i] - width[i])
        d2 = max((i for i in range(n) if i not in top), key=lambda i: mean[i] + width[i])
        if mean[d1] - width[d1] >= mean[d2] + width[d2]:
            return sorted(top), coins.flips
        for i in (d1, d2):
            won[i] += coins.meet_somebody(wins, i)
            times[i] += 1
