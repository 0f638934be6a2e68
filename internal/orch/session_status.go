package orch

// settleSession makes an open session's status say what it does for the
// draft's thread: it waits for the user, runs a turn, or is ready for one.
func settleSession(d *draft, sessionID string) {
	session, ok := lookup(d.p, d.p.ProviderSessions, sessionID)
	if !ok || session.Status != "ready" && session.Status != "running" && session.Status != "waiting" {
		return
	}
	status := "ready"
	for _, turn := range d.p.ProviderTurns {
		thread, _ := lookup(d.p, d.p.ProviderThreads, turn.ProviderThreadID)
		if turn.Status == "running" && string(thread.ProviderSessionID) == sessionID {
			status = "running"
		}
	}
	for _, request := range d.p.RuntimeRequests {
		if request.Status == "pending" && request.ResponseCapability.ProviderSessionID == sessionID {
			status = "waiting"
		}
	}
	if session.Status != status {
		session.Status, session.UpdatedAt = status, d.now
		d.put(session)
	}
}
