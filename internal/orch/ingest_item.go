package orch

import (
	"bytes"
	"strings"
)

// ingestItem stores an item of a turn. Delivery is buffered: text that still
// grows (an assistant message, reasoning, a plan) is not stored before it is
// complete, and growing output of other work only when its status changes.
func ingestItem(d *draft, s source, e ItemUpdated) {
	item := e.Item
	item.Detail = validDetail(item.Detail)
	nodeKind, ok := nodeKinds[item.Type]
	if !ok {
		s.log.Warn("provider item of an unknown type", "driver", s.driver, "type", item.Type)
		return
	}
	ended := isTerminal(KindTurnItem, item.Status)
	if isText(item.Type) && (item.Streaming || !ended || strings.TrimSpace(item.Text) == "") {
		return
	}
	o, ok := turnOf(d, s, e.NativeThreadID, e.NativeTurnID)
	if !ok {
		return
	}
	id := providerItemID("turn-item", s.driver, e.NativeTurnID, item.NativeID)
	stored, known := lookup(d.p, d.p.TurnItems, id)
	if known && (stored.Status == item.Status || isTerminal(KindTurnItem, stored.Status)) {
		if item.Streaming || same(stored, item) {
			return
		}
	}
	ref := &NativeRef{s.driver, item.NativeID, "strong"}
	node := string(o.turn.NodeID)
	if nodeKind != "" {
		node = putItemNode(d, o, e, ref, nodeKind)
	}
	messageID := ""
	if item.Type == "assistant_message" {
		messageID = providerItemID("message", s.driver, e.NativeTurnID, item.NativeID)
		message, exists := lookup(d.p, d.p.Messages, messageID)
		if !exists {
			message = Message{
				ID: messageID, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(node),
				Role: "assistant", Attachments: []Attachment{}, CreatedAt: d.now,
			}
		}
		message.Text, message.UpdatedAt = item.Text, d.now
		d.put(message)
	}
	planID := putPlan(d, s, o, e, node)

	next := stored
	if !known {
		next = TurnItem{
			ID: id, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(node),
			ProviderThreadID: Ref(o.thread.ID), ProviderTurnID: Ref(o.turn.ID), NativeItemRef: ref,
			Ordinal: d.p.nextItemOrdinal(o.run.ID), Type: item.Type, StartedAt: d.at(),
		}
	}
	if item.ParentID != "" {
		parent := providerItemID("turn-item", s.driver, e.NativeTurnID, item.ParentID)
		if _, ok := lookup(d.p, d.p.TurnItems, parent); ok {
			next.ParentItemID = Ref(parent)
		}
	}
	next.Status, next.Title, next.Text, next.Detail = item.Status, item.Title, item.Text, item.Detail
	next.MessageID, next.PlanID = messageID, planID
	if ended && next.CompletedAt == nil {
		next.CompletedAt = d.at()
	}
	d.put(next)
}

// nodeKinds maps item types to the kind of their node; "" for items that
// belong to the root node.
var nodeKinds = map[string]string{
	"assistant_message": "assistant_message",
	"reasoning":         "reasoning",
	"proposed_plan":     "plan",
	"todo_list":         "todo_list",
	"command_execution": "tool_call",
	"file_change":       "tool_call",
	"file_search":       "tool_call",
	"web_search":        "tool_call",
	"dynamic_tool":      "tool_call",
	"workflow":          "tool_call",
	"compaction":        "",
	"model_fallback":    "",
	"error":             "",
}

// isText reports whether an item is text that arrives in pieces.
func isText(itemType string) bool {
	return itemType == "assistant_message" || itemType == "reasoning" || itemType == "proposed_plan"
}

func same(stored TurnItem, item ProviderItem) bool {
	return stored.Status == item.Status && stored.Title == item.Title && stored.Text == item.Text &&
		bytes.Equal(stored.Detail, item.Detail)
}

func putItemNode(d *draft, o owner, e ItemUpdated, ref *NativeRef, kind string) string {
	id := providerItemID("node", ref.Driver, e.NativeTurnID, e.Item.NativeID)
	before, known := lookup(d.p, d.p.Nodes, id)
	node := before
	if !known {
		node = ExecutionNode{
			ID: id, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), ParentNodeID: Ref(o.turn.NodeID),
			RootNodeID: o.turn.NodeID, Kind: kind, ProviderThreadID: Ref(o.thread.ID),
			ProviderTurnID: Ref(o.turn.ID), NativeItemRef: ref, StartedAt: d.at(),
		}
		parent := providerItemID("node", ref.Driver, e.NativeTurnID, e.Item.ParentID)
		if _, ok := lookup(d.p, d.p.Nodes, parent); ok && e.Item.ParentID != "" {
			node.ParentNodeID = Ref(parent)
		}
	}
	node.Status = e.Item.Status
	if isTerminal(KindNode, node.Status) && node.CompletedAt == nil {
		node.CompletedAt = d.at()
	}
	if !known || node.Status != before.Status {
		d.put(node)
	}
	return id
}

// putPlan stores the artefact of a plan item and returns its id, "" for other
// items. A new proposal supersedes an open older one.
func putPlan(d *draft, s source, o owner, e ItemUpdated, node string) string {
	if e.Item.Type != "proposed_plan" && e.Item.Type != "todo_list" {
		return ""
	}
	id := providerItemID("plan", s.driver, e.NativeTurnID, e.Item.NativeID)
	plan, known := lookup(d.p, d.p.Plans, id)
	if !known {
		for _, older := range append([]PlanArtifact(nil), d.p.Plans...) {
			if older.Kind == e.Item.Type && older.Status == "active" {
				older.Status, older.UpdatedAt = "superseded", d.now
				d.put(older)
			}
		}
		plan = PlanArtifact{
			ID: id, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(node),
			Kind: e.Item.Type, Status: "active", CreatedAt: d.now,
		}
	}
	plan.UpdatedAt = d.now
	if plan.Kind == "proposed_plan" {
		plan.Markdown = e.Item.Text
	} else {
		plan.Steps = e.Item.Detail
		if e.Item.Status == "completed" {
			plan.Status = "completed"
		}
	}
	d.put(plan)
	return id
}
