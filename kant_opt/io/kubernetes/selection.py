"""Where a pod may go: node selectors and required node affinity, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Node

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
Selector = dict[str, tuple[str, ...]]


class Selection:
    """Turns node selectors and affinity into a selector, or into a list of nodes ruled out where that says more.

    One term of In expressions on labels is a selector. Anything else (several terms, NotIn, Exists, Gt, node names) is
    asked of each node here; costs terms x nodes once per different affinity.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._known: dict[str, tuple[str, ...]] = {}

    def rules(self, spec: Object) -> dict[str, object]:
        """Return the podset fields `selector` and `not_nodes` for a pod spec."""
        selector: Selector = {key: (value,) for key, value in spec.texts("nodeSelector").items()}
        required = spec.child("affinity").child("nodeAffinity").child("requiredDuringSchedulingIgnoredDuringExecution")
        terms = list(required.children("nodeSelectorTerms"))
        if not terms:
            return {"selector": selector}
        simple = _as_selector(terms[0]) if len(terms) == 1 else None
        if simple is None:
            return {"selector": selector, "not_nodes": self._ruled_out(terms)}
        for key, values in simple.items():
            selector[key] = tuple(v for v in values if v in selector[key]) if key in selector else values
        return {"selector": selector}

    def _ruled_out(self, terms: list[Object]) -> tuple[str, ...]:
        wanted = [_Term(term) for term in terms]
        key = "|".join(repr(term) for term in wanted)
        if key not in self._known:
            self._known[key] = tuple(n.name for n in self._nodes if not any(term.matches(n) for term in wanted))
        return self._known[key]


def note_unread(spec: Object, notes: Notes, name: str) -> None:
    """Note the rules of a pending pod that are not understood."""
    affinity = spec.child("affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        if any(affinity.child(kind).children("requiredDuringSchedulingIgnoredDuringExecution")):
            notes.add(f"required {kind} is not read, of pods", name)
    for constraint in spec.children("topologySpreadConstraints"):
        if constraint.text("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            notes.add("topologySpreadConstraints are not read, of pods", name)
            break


def labels_match(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet a label selector (matchLabels and matchExpressions, all of them)."""
    expressions = [_expression(e) for e in selector.children("matchExpressions")]
    return all(labels.get(key) == value for key, value in selector.texts("matchLabels").items()) and all(
        _holds(operator, values, labels.get(key)) for key, operator, values in expressions
    )


class _Term:
    """Expressions that must all hold; one without any expression matches no node (Kubernetes' rule)."""

    def __init__(self, term: Object) -> None:
        self.labels = [_expression(e) for e in term.children("matchExpressions")]
        self.fields = [_expression(e) for e in term.children("matchFields")]
        for field in term.children("matchFields"):
            if field.text("key") != "metadata.name":
                raise field.fault("key", f"unknown field {field.text('key')!r}", "only metadata.name can be matched")

    def __repr__(self) -> str:
        return repr((self.labels, self.fields))

    def matches(self, node: Node) -> bool:
        """Return whether the node meets every expression."""
        return bool(self.labels or self.fields) and (
            all(_holds(operator, values, node.labels.get(key)) for key, operator, values in self.labels)
            and all(_holds(operator, values, node.name) for _, operator, values in self.fields)
        )


def _as_selector(term: Object) -> Selector | None:
    if any(term.children("matchFields")):
        return None
    found: Selector = {}
    for expression in term.children("matchExpressions"):
        key, operator, values = _expression(expression)
        if operator != "In" or key in found:
            return None
        found[key] = values
    return found or None


def _expression(expression: Object) -> tuple[str, str, tuple[str, ...]]:
    operator = expression.required("operator")
    if operator not in _OPERATORS:
        raise expression.fault("operator", f"unknown operator {operator[:40]!r}", f"use {', '.join(_OPERATORS)}")
    return expression.required("key"), operator, expression.words("values")


def _holds(operator: str, values: tuple[str, ...], value: str | None) -> bool:
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    have, bound = _integer(value), _integer(values[0] if len(values) == 1 else None)
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and len(text) <= 19 and text.removeprefix("-").isdecimal() else None
