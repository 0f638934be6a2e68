package scenario

// AwaitItem waits until a thread has a turn item of a type, now or before.
type AwaitItem struct {
	Type    string   `json:"type"`
	Status  string   `json:"status"` // "" means any
	Run     int      `json:"run"`    // ordinal; 0 means any
	Count   int      `json:"count"`  // 0 means 1
	Thread  string   `json:"thread"`
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// AwaitRequest waits until a runtime request is pending.
type AwaitRequest struct {
	Kind    string   `json:"kind"` // "" means any
	Thread  string   `json:"thread"`
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// AwaitSession waits until a thread's last provider session has a status.
type AwaitSession struct {
	Status  string   `json:"status"`
	Thread  string   `json:"thread"`
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// Interrupt interrupts a run and waits for the provider's acknowledgement,
// unless a gate holds it.
type Interrupt struct {
	Run         int    `json:"run"`           // ordinal; 0 means the last
	WaitForItem string `json:"wait_for_item"` // type of an item to wait for before; "" does not wait
	Reason      string `json:"reason"`
	Await       string `json:"await"`   // acknowledged or requested; "" means acknowledged
	Refused     string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// Respond answers the pending runtime request. Answers are by question id.
type Respond struct {
	Decision string              `json:"decision"`
	Answers  map[string][]string `json:"answers"`
	Thread   string              `json:"thread"`
	Refused  string              `json:"refused"` // code of the refusal that is wanted, of the last request; "" means none
}

// CancelQueuedRun takes a queued run back.
type CancelQueuedRun struct {
	Run int `json:"run"` // ordinal
}

// ReorderQueued moves the message of a queued run before that of another.
type ReorderQueued struct {
	Run     int    `json:"run"`     // ordinal
	Before  int    `json:"before"`  // ordinal; 0 means the end of the queue
	Refused string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// EditQueued changes the message of a run that has not started.
type EditQueued struct {
	Run     int    `json:"run"` // ordinal
	Text    string `json:"text"`
	Refused string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// Promote gives the message of a queued run to the active run.
type Promote struct {
	Run     int    `json:"run"`     // ordinal of the queued run
	Target  int    `json:"target"`  // ordinal; 0 means the active one
	Refused string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// Rollback takes the thread back to a checkpoint and waits until it is done.
type Rollback struct {
	Scope      string `json:"scope"`      // end of the scope's id: "run-1", or "run-1.2" of the second subagent
	Checkpoint int    `json:"checkpoint"` // ordinal within the scope
	Refused    string `json:"refused"`    // code of the refusal that is wanted; "" means none
}

// SwitchProvider makes another instance answer from now on.
type SwitchProvider struct {
	Provider string `json:"provider"` // instance
	Refused  string `json:"refused"`  // code of the refusal that is wanted; "" means none
}

// Fork makes a thread from another one.
type Fork struct {
	As      string `json:"as"`      // the fork's name in the scenario
	Thread  string `json:"thread"`  // the source; "" means the scenario's
	Run     int    `json:"run"`     // ordinal of the last run that the fork has; 0 means the latest stable
	Refused string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// MergeBack tells the thread that a fork was made from what the fork did.
type MergeBack struct {
	From    string `json:"from"`    // the fork's name
	Refused string `json:"refused"` // code of the refusal that is wanted; "" means none
}

// Detach ends a thread's use of its provider session and waits for the end.
type Detach struct {
	Thread string `json:"thread"` // "" means the scenario's
}

// WriteFile writes a file in the workspace, as the provider did when it was
// recorded: a peer plays what it said, not what it did.
type WriteFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (a *AwaitItem) timeout() Duration {
	if a == nil {
		return 0
	}
	return a.Timeout
}

func (a *AwaitRequest) timeout() Duration {
	if a == nil {
		return 0
	}
	return a.Timeout
}

func (a *AwaitSession) timeout() Duration {
	if a == nil {
		return 0
	}
	return a.Timeout
}
