package orch

import (
	"fmt"
	"slices"
	"strings"
)

// A provider thread that does not know all of the conversation is told the
// rest before the user's words, which stay clean in the store. What it is told
// is a handoff, and how the context got there a transfer.

// handoffSpec is one handoff to be made.
type handoffSpec struct {
	transfer      ContextTransfer // pending, or zero for a new one
	strategy      string
	resolution    string
	from          []string // provider threads
	covered       OrdinalRange
	summary       string
	sourceAdopted string // instance that answered last of what is covered
}

// neededHandoffs lists what a provider thread must be told before a run.
// fresh tells that it knows nothing; merges are the summaries of pending
// merges, by transfer id.
func neededHandoffs(p *Projection, run Run, known ProviderThread, fresh, nativeFork bool, merges map[string]mergeSource) []handoffSpec {
	var specs []handoffSpec
	fork, forked := p.forkTransfer()
	first, strategy, resolution := 1, "full_thread_summary", "portable_context"
	if !fresh {
		strategy, resolution = "delta_since_target_last_seen", "delta_context"
		if known.LastRunOrdinal != nil {
			first = *known.LastRunOrdinal + 1
		}
	}
	own := handoffSpec{strategy: strategy, resolution: resolution, covered: OrdinalRange{From: first, To: run.Ordinal - 1}}
	for _, before := range p.Runs {
		if before.Ordinal < first || before.Ordinal >= run.Ordinal || p.rolledBack(before) || before.ProviderThreadID == "" ||
			!fresh && string(before.ProviderThreadID) == known.ID {
			continue
		}
		if !slices.Contains(own.from, string(before.ProviderThreadID)) {
			own.from = append(own.from, string(before.ProviderThreadID))
		}
		own.sourceAdopted = before.ProviderInstanceID
		own.summary += summarize(p, before)
	}
	if fresh && forked && !nativeFork {
		inherited := summarizeItems(fork.Inherited)
		if fork.Status == "pending" {
			specs = append(specs, handoffSpec{
				transfer: fork, strategy: strategy, resolution: resolution, summary: inherited,
				covered: OrdinalRange{From: 1, To: fork.SourceOrdinal}, sourceAdopted: string(fork.SourceInstanceID),
			})
		} else {
			own.summary = inherited + own.summary
		}
	}
	if own.summary != "" {
		specs = append(specs, own)
	}
	for _, transfer := range p.ContextTransfers {
		source, ok := merges[transfer.ID]
		if !ok || transfer.Status != "pending" {
			continue
		}
		specs = append(specs, handoffSpec{
			transfer: transfer, strategy: "fork_delta_summary", resolution: "fork_delta_context",
			from: source.from, covered: OrdinalRange{From: 1, To: source.last}, summary: source.summary,
			sourceAdopted: source.instance,
		})
	}
	return specs
}

// putHandoff stores a handoff with its transfer and the item that shows it. It
// returns the run and the provider thread, which the caller puts.
func putHandoff(d *draft, run Run, thread ProviderThread, spec handoffSpec) (Run, ProviderThread, ContextHandoff) {
	transfer := spec.transfer
	if transfer.ID == "" {
		transfer = ContextTransfer{
			ID: d.newID("context-transfer"), Type: "provider_handoff", SourceThreadID: d.p.Thread.ID,
			TargetThreadID: d.p.Thread.ID, CreatedBy: "system", CreatedAt: d.now,
		}
	} else {
		transfer.Status = "resolved_portable"
	}
	transfer.SourceInstanceID, transfer.TargetInstanceID = Ref(spec.sourceAdopted), Ref(run.ProviderInstanceID)
	transfer.TargetRunID, transfer.Resolution = Ref(run.ID), &TransferResolution{Strategy: spec.resolution}
	if transfer.Status != "" {
		d.put(transfer)
	}
	transfer.Status, transfer.ConsumedAt = "consumed", d.at()
	d.put(transfer)
	handoff := ContextHandoff{
		ID: d.newID("context-handoff"), TransferID: transfer.ID, ThreadID: d.p.Thread.ID, TargetRunID: run.ID,
		FromProviderThreadIDs: append([]string{}, spec.from...), ToProviderThreadID: Ref(thread.ID),
		CoveredRunOrdinals: spec.covered, Strategy: spec.strategy, Status: "ready",
		SummaryText: strings.TrimSuffix(spec.summary, "\n"), CreatedByInstanceID: run.ProviderInstanceID, CreatedAt: d.now,
	}
	d.put(handoff)
	putSignal(d, run, "context-handoff:"+handoff.ID, TurnItem{
		Type: "handoff", Status: "completed", NodeID: Ref(run.RootNodeID), Title: "Context handoff",
		ProviderThreadID: Ref(thread.ID), HandoffID: handoff.ID,
	})
	run.ContextHandoffID = Ref(handoff.ID)
	thread.HandoffIDs = append(append([]string{}, thread.HandoffIDs...), handoff.ID)
	return run, thread, handoff
}

// summarize is the conversation of a run in words.
func summarize(p *Projection, run Run) string {
	var b strings.Builder
	for _, message := range p.Messages {
		if string(message.RunID) == run.ID {
			say(&b, message.Role, message.Text)
		}
	}
	return b.String()
}

// summarizeItems is the conversation of inherited items in words.
func summarizeItems(items []VisibleItem) string {
	var b strings.Builder
	for _, v := range items {
		switch v.Item.Type {
		case "user_message":
			say(&b, "user", v.Item.Text)
		case "assistant_message":
			say(&b, "assistant", v.Item.Text)
		}
	}
	return b.String()
}

func say(b *strings.Builder, role, text string) {
	speaker := "User"
	if role == "assistant" {
		speaker = "Assistant"
	}
	fmt.Fprintf(b, "%s: %s\n", speaker, text)
}

// withHandoffs is the provider's input: the handoffs before the user's words.
func withHandoffs(handoffs []ContextHandoff, text string) string {
	if len(handoffs) == 0 {
		return text
	}
	var b strings.Builder
	for _, h := range handoffs {
		fmt.Fprintf(&b, "Context handoff (%s):\n%s\n\n", h.Strategy, h.SummaryText)
	}
	fmt.Fprintf(&b, "User message:\n%s", text)
	return b.String()
}
