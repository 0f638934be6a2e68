package orch

// ingestRequestOpened stores a question of the provider: a waiting node, the
// request and its item.
func ingestRequestOpened(d *draft, s source, e RequestOpened) {
	o, ok := turnOf(d, s, e.NativeThreadID, e.NativeTurnID)
	if !ok {
		return
	}
	if _, ok := openRequest(d.p, s, e.NativeRequestID); ok {
		return
	}
	id := d.newID("runtime-request")
	kind, itemType := "approval_request", "approval_request"
	if e.Kind == "user_input" {
		kind, itemType = "user_input_request", "user_input_request"
	}
	parent := o.turn.NodeID
	parentItem := Ref("")
	if e.NativeItemID != "" {
		guarded := providerItemID("node", s.driver, e.NativeTurnID, e.NativeItemID)
		if _, ok := lookup(d.p, d.p.Nodes, guarded); ok {
			parent = guarded
			parentItem = Ref(providerItemID("turn-item", s.driver, e.NativeTurnID, e.NativeItemID))
		}
	}
	d.put(ExecutionNode{
		ID: requestNodeID(id), ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), ParentNodeID: Ref(parent),
		RootNodeID: o.turn.NodeID, Kind: kind, Status: "waiting", ProviderThreadID: Ref(o.thread.ID),
		ProviderTurnID: Ref(o.turn.ID), RuntimeRequestID: Ref(id), StartedAt: d.at(),
	})
	d.put(RuntimeRequest{
		ID: id, NodeID: requestNodeID(id), ProviderTurnID: Ref(o.turn.ID),
		NativeRequestRef: &NativeRef{s.driver, e.NativeRequestID, "strong"}, Kind: e.Kind, Status: "pending",
		ResponseCapability: ResponseCapability{Type: "live", ProviderSessionID: s.sessionID}, CreatedAt: d.now,
	})
	d.put(TurnItem{
		ID: requestItemID(id), ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(requestNodeID(id)),
		ProviderThreadID: Ref(o.thread.ID), ProviderTurnID: Ref(o.turn.ID), ParentItemID: parentItem,
		Ordinal: d.p.nextItemOrdinal(o.run.ID), Type: itemType, Status: "waiting", Title: e.Title,
		StartedAt: d.at(), RequestID: id, Detail: validDetail(e.Detail),
	})
}

// ingestRequestClosed takes a question back that the provider dropped.
func ingestRequestClosed(d *draft, s source, e RequestClosed) {
	if request, ok := openRequest(d.p, s, e.NativeRequestID); ok {
		closeRequest(d, request, "cancelled", "dropped_by_provider")
	}
}

// openRequest finds the pending request of a native id. Providers use an id
// again once it is answered.
func openRequest(p *Projection, s source, native string) (RuntimeRequest, bool) {
	for _, request := range p.RuntimeRequests {
		if request.Status == "pending" && request.NativeRequestRef.NativeID == native &&
			request.ResponseCapability.ProviderSessionID == s.sessionID {
			return request, true
		}
	}
	return RuntimeRequest{}, false
}

// closeRequest ends a request that nobody answered, with its node and item.
func closeRequest(d *draft, request RuntimeRequest, status, reason string) {
	request.Status, request.ResolvedAt = status, d.at()
	request.ResponseCapability = ResponseCapability{Type: "not_resumable", Reason: reason}
	d.put(request)
	if node, ok := lookup(d.p, d.p.Nodes, request.NodeID); ok {
		node.Status, node.CompletedAt = "cancelled", d.at()
		d.put(node)
	}
	if item, ok := lookup(d.p, d.p.TurnItems, requestItemID(request.ID)); ok {
		item.Status, item.CompletedAt = "cancelled", d.at()
		d.put(item)
	}
}
