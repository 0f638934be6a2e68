package assistant

import "testing"

// The kind of test that many have: it looks at what the user sees, and the
// user sees something even when the provider was asked the wrong thing.
func TestAsk(t *testing.T) {
	if Ask(t.TempDir(), "Respond with exactly: fixture simple ok") == "" {
		t.Error("the user sees nothing")
	}
}
