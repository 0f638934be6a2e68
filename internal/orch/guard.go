package orch

import "slices"

// terminal lists the statuses that end an entity's life.
var terminal = map[Kind][]string{
	KindRun:            {"completed", "interrupted", "failed", "cancelled", "rolled_back"},
	KindAttempt:        {"completed", "interrupted", "failed", "cancelled", "superseded"},
	KindNode:           {"completed", "interrupted", "failed", "cancelled", "rolled_back"},
	KindSubagent:       {"completed", "interrupted", "failed", "cancelled", "rolled_back"},
	KindProviderTurn:   {"completed", "interrupted", "failed", "cancelled"},
	KindRuntimeRequest: {"resolved", "expired", "cancelled"},
	KindTurnItem:       {"completed", "interrupted", "failed", "cancelled"},
	KindTransfer:       {"failed", "consumed", "superseded"},
	KindHandoff:        {"failed", "superseded"},
}

func isTerminal(kind Kind, status string) bool { return slices.Contains(terminal[kind], status) }

// absorbed is the lifecycle guard: it reports whether a change would take an
// entity out of a terminal status, in which case it does not happen. Other
// fields of an ended entity may still change. A completed run can be rolled
// back, so can any node; subagents and the root turns of resumed background
// work open again.
func absorbed(before, after entity) bool {
	was, is := before.facts(), after.facts()
	if was.status == is.status || !isTerminal(was.kind, was.status) {
		return false
	}
	switch e := before.(type) {
	case Run:
		return !(was.status == "completed" && is.status == "rolled_back")
	case ExecutionNode:
		reopens := (e.Kind == "subagent" || e.Kind == "root_turn") && !isTerminal(KindNode, is.status)
		return was.status == "rolled_back" || !reopens && is.status != "rolled_back"
	case Subagent:
		return isTerminal(KindSubagent, is.status)
	}
	return true
}
