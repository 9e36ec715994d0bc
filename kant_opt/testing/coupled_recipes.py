"""The stored coupled instances: what each is made from and what it is hard for."""

from __future__ import annotations

from kant_opt.testing.coupled import Recipe

TWO = (8, 16, 16)
"""2,048 nodes: 8 spines x 16 leaves x 16 nodes."""
THREE = (4, 4, 8, 16)
"""2,048 nodes: 4 cores x 4 spines x 8 leaves x 16 nodes."""
WIDE = (4, 16, 32)
"""2,048 nodes: 4 spines x 16 leaves x 32 nodes."""
LARGE_TWO = (16, 32, 16)
"""8,192 nodes: 16 spines x 32 leaves x 16 nodes."""
LARGE_THREE = (4, 8, 8, 32)
"""8,192 nodes: 4 cores x 8 spines x 8 leaves x 32 nodes."""

RECIPES = (
    Recipe("2k-pow2-half", "easy: small pods must not break more nodes than they need", 1, TWO, "pow2", 50),
    Recipe(
        "2k-pow2-tight",
        "powers of two fit leaf by leaf, if the nodes of small pods stay together",
        2, TWO, "pow2", 97,
    ),
    Recipe("2k-pow2-full", "no node to spare: the small pods' nodes decide which gangs are cut", 3, TWO, "pow2", 100),
    Recipe("2k-pow2-over", "which gangs stay out, to fill the last GPU", 4, TWO, "pow2", 120),
    Recipe("2k-odd-half", "odd sizes with room: traffic can be least for every gang", 5, TWO, "odd", 50),
    Recipe("2k-odd-tight", "odd sizes in leaves of 16, little room", 6, TWO, "odd", 97),
    Recipe("2k-odd-full", "every leaf left over cuts a gang, on two levels", 7, TWO, "odd", 100),
    Recipe("2k-odd-over", "many sets of gangs fill the cluster, with different traffic", 8, TWO, "odd", 110),
    Recipe("2k-wide-tight", "gangs of many leaves beside gangs of one node", 9, TWO, "wide", 97),
    Recipe("2k-wide-over", "a large gang left out lets many small ones in", 10, TWO, "wide", 130),
    Recipe("2k-leaf32-odd-full", "larger leaves: more ways to fill each", 11, WIDE, "odd", 100),
    Recipe("2k-small-tight", "a fifth of the GPUs asked for by single pods", 12, TWO, "odd", 97, small=20),
    Recipe(
        "2k-part-tight",
        "half of the gangs have pods of 2 or 4 GPUs: two may share a node",
        13, TWO, "odd", 96, part_node=50,
    ),
    Recipe("2k-part-over", "the same, more than fits", 14, TWO, "pow2", 120, part_node=50),
    Recipe("2k-required-tight", "four in five gangs bound to a leaf or spine", 15, TWO, "odd", 95, required=80),
    Recipe("2k-required-over", "bound gangs that fit together only in some ways", 16, TWO, "pow2", 115, required=80),
    Recipe("2k-classes-tight", "three priority classes, all fit", 17, TWO, "odd", 97, classes=3),
    Recipe("2k-classes-over", "three priority classes: the lower take what is left", 18, TWO, "odd", 125, classes=3),
    Recipe("2k-pools-tight", "two pools in every spine, one gang in ten takes either", 19, TWO, "odd", 96, pools=2),
    Recipe("2k-pools-over", "two pools, two classes, more than fits", 20, TWO, "pow2", 120, pools=2, classes=2),
    Recipe("2k-closed-full", "drained nodes make leaves of 11 to 16", 21, TWO, "odd", 100, closed=8),
    Recipe("2k-churn-half", "holes of all sizes, half of the room asked for", 22, TWO, "odd", 50, churn=40),
    Recipe("2k-churn-tight", "holes of all sizes, and all of them wanted", 23, TWO, "odd", 98, churn=40),
    Recipe("2k-churn-over", "holes of all sizes, powers of two, more than fits", 24, TWO, "pow2", 120, churn=50),
    Recipe("2k-core-odd-tight", "three levels, odd sizes, little room", 25, THREE, "odd", 97),
    Recipe("2k-core-odd-full", "three levels, no room to spare", 26, THREE, "odd", 100),
    Recipe("2k-core-pow2-over", "three levels, two classes, more than fits", 27, THREE, "pow2", 115, classes=2),
    Recipe(
        "2k-core-all-over",
        "everything at once on three levels",
        28, THREE, "odd", 120, part_node=25, required=30, classes=3, pools=2, closed=3, churn=30,
    ),
    Recipe("8k-pow2-tight", "8,192 nodes, powers of two up to 128", 29, LARGE_TWO, "pow2", 97),
    Recipe("8k-odd-half", "8,192 nodes with room", 30, LARGE_TWO, "odd", 50),
    Recipe("8k-odd-tight", "8,192 nodes, odd sizes, little room", 31, LARGE_TWO, "odd", 96),
    Recipe("8k-odd-full", "8,192 nodes, no room to spare", 32, LARGE_TWO, "odd", 100),
    Recipe(
        "8k-wide-over",
        "8,192 nodes, gangs of 1 to 256, more than fits, three classes",
        33, LARGE_TWO, "wide", 120, classes=3,
    ),
    Recipe(
        "8k-part-tight",
        "8,192 nodes, a third of the gangs with pods of 2 or 4 GPUs",
        34, LARGE_TWO, "wide", 96, part_node=33,
    ),
    Recipe("8k-core-odd-tight", "three levels with leaves of 32", 35, LARGE_THREE, "odd", 97),
    Recipe(
        "8k-core-required-over",
        "three levels, half of the gangs bound",
        36, LARGE_THREE, "pow2", 110, required=50, classes=2,
    ),
    Recipe("8k-core-pools-tight", "three levels, two pools", 37, LARGE_THREE, "odd", 96, pools=2),
    Recipe(
        "8k-core-all-over",
        "everything at once on 8,192 nodes",
        38, LARGE_THREE, "wide", 120, part_node=25, required=30, classes=3, pools=2, closed=3, churn=30,
    ),
    Recipe("2k-even-full", "few small pods, no gang of one node to fill up with", 39, TWO, "even", 100, small=1),
    Recipe("2k-even-over", "few small pods, two classes, more than fits", 40, TWO, "even", 115, small=1, classes=2),
    Recipe("2k-even-pools-full", "few small pods, two pools, no room to spare", 41, TWO, "even", 100, small=1, pools=2),
    Recipe("2k-odd-churn-full", "few small pods for holes of all sizes", 42, TWO, "odd", 100, small=1, churn=30),
    Recipe("8k-even-tight", "8,192 nodes, few small pods, little room", 43, LARGE_TWO, "even", 97, small=1),
    Recipe("8k-even-full", "8,192 nodes, few small pods, no room to spare", 44, LARGE_TWO, "even", 100, small=1),
    Recipe("8k-core-even-full", "three levels, few small pods, full", 45, LARGE_THREE, "even", 100, small=1),
    Recipe(
        "8k-even-required-over",
        "few small pods, half of the gangs bound, more than fits",
        46, LARGE_TWO, "even", 110, small=1, required=50,
    ),
)  # fmt: skip
