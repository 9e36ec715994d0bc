"""Space and time together: when and where each queued job starts."""

import kant_opt.planning.optimal
import kant_opt.planning.orders
import kant_opt.planning.policies  # noqa: F401  # they fill the registries
from kant_opt.planning.plan import plan
from kant_opt.planning.registry import ORDERS, POLICIES, Order, Policy, make_policy
from kant_opt.planning.replan import plan_diff, replan
from kant_opt.planning.window import Patience

__all__ = ["ORDERS", "POLICIES", "Order", "Patience", "Policy", "make_policy", "plan", "plan_diff", "replan"]
