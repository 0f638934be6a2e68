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

// Interrupt interrupts a run and waits for the provider's acknowledgement.
type Interrupt struct {
	Run         int    `json:"run"`           // ordinal; 0 means the last
	WaitForItem string `json:"wait_for_item"` // type of an item to wait for before; "" does not wait
	Reason      string `json:"reason"`
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

// Promote gives the message of a queued run to the active run.
type Promote struct {
	Run    int `json:"run"`    // ordinal of the queued run
	Target int `json:"target"` // ordinal; 0 means the active one
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
