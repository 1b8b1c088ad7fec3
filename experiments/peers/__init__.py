"""Sampling rules of the literature and of other software, to compare ours with. They are not offered for studies.

All answer with the same estimate as ours, the top k of the ridge belief. What differs is what they ask.
"""

from collections.abc import Callable

from experiments.peers.base import Peer
from experiments.peers.information import Asap, CrowdBt, InformationGain
from experiments.peers.top_two import EbTci, T3c, TopTwo
from experiments.peers.tournaments import Adjacent, RoundRobin, Swiss

PEERS: dict[str, Callable[[], Peer]] = {
    "round-robin": lambda: RoundRobin("round-robin"),
    "swiss": lambda: Swiss("swiss"),
    "adjacent": lambda: Adjacent("adjacent"),
    "information-gain": lambda: InformationGain("information-gain"),
    "asap": lambda: Asap("asap"),
    "crowd-bt": lambda: CrowdBt("crowd-bt"),
    "gavel": lambda: CrowdBt("gavel", walks=True),
    "top-two": lambda: TopTwo("top-two"),
    "t3c": lambda: T3c("t3c"),
    "eb-tci": lambda: EbTci("eb-tci"),
}
