"""Who is ahead in the queue. Importing it fills ORDERS."""

from kant_opt.planning.orders import fair_share, simple

del fair_share, simple
