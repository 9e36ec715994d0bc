"""Parts for testing kant_opt and what others add to it.

`builders` writes cases in one line, `brute_force` finds the best answer of small ones, `objective` values any
placement, `strategies` (needs hypothesis) draws requests and placements.
"""
