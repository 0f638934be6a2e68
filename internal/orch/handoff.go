package orch

import (
	"fmt"
	"strings"
)

// putFullHandoff tells a new provider thread the whole conversation so far: a
// transfer, the handoff with its text, and an item that shows it. It returns
// the run and the provider thread, which the caller puts.
func putFullHandoff(d *draft, run Run, thread, from ProviderThread) (Run, ProviderThread) {
	transfer := ContextTransfer{
		ID: d.newID("context-transfer"), Type: "provider_handoff",
		SourceThreadID: d.p.Thread.ID, TargetThreadID: d.p.Thread.ID,
		TargetInstanceID: Ref(run.ProviderInstanceID), TargetRunID: Ref(run.ID), Status: "consumed",
		Resolution: &TransferResolution{Strategy: "portable_context"}, CreatedBy: "system",
		CreatedAt: d.now, ConsumedAt: d.at(),
	}
	handoff := ContextHandoff{
		ID: d.newID("context-handoff"), TransferID: transfer.ID, ThreadID: d.p.Thread.ID, TargetRunID: run.ID,
		FromProviderThreadIDs: []string{}, ToProviderThreadID: Ref(thread.ID),
		CoveredRunOrdinals: OrdinalRange{From: 1, To: run.Ordinal - 1}, Strategy: "full_thread_summary",
		Status: "ready", SummaryText: summarize(d.p, 1, run.Ordinal-1), CreatedByInstanceID: run.ProviderInstanceID,
		CreatedAt: d.now,
	}
	if from.ID != "" {
		handoff.FromProviderThreadIDs = append(handoff.FromProviderThreadIDs, from.ID)
		transfer.SourceInstanceID = Ref(from.ProviderInstanceID)
	}
	d.put(transfer)
	d.put(handoff)
	putSignal(d, run, "context-handoff:"+handoff.ID, TurnItem{
		Type: "handoff", Status: "completed", NodeID: Ref(run.RootNodeID), Title: "Context handoff",
		ProviderThreadID: Ref(thread.ID), HandoffID: handoff.ID,
	})
	run.ContextHandoffID = Ref(handoff.ID)
	thread.HandoffIDs = append(append([]string{}, thread.HandoffIDs...), handoff.ID)
	return run, thread
}

// summarize is the conversation of some runs in words: the messages that
// still count, in order.
func summarize(p *Projection, from, to int) string {
	var b strings.Builder
	for _, message := range p.Messages {
		run, ok := lookup(p, p.Runs, string(message.RunID))
		if !ok || run.Ordinal < from || run.Ordinal > to || run.Status == "rolled_back" {
			continue
		}
		speaker := "User"
		if message.Role == "assistant" {
			speaker = "Assistant"
		}
		fmt.Fprintf(&b, "%s: %s\n", speaker, message.Text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// withHandoff is the provider's input: the handoff before the user's words,
// which stay clean in the store.
func withHandoff(h ContextHandoff, text string) string {
	return fmt.Sprintf("Context handoff (%s):\n%s\n\nUser message:\n%s", h.Strategy, h.SummaryText, text)
}
