"""Who starts when room is free. Importing it fills POLICIES."""

from kant_opt.planning.policies import best_effort, conservative, delay, easy, fifo, slack

del best_effort, conservative, delay, easy, fifo, slack
