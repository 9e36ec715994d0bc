"""Published scheduling instances with known optima, and how near the planner comes."""
