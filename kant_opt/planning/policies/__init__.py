"""Who starts when room is free. Importing it fills POLICIES."""

from kant_opt.planning.policies import best_effort, conservative, easy, fifo

del best_effort, conservative, easy, fifo
