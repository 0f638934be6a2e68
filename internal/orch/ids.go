package orch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Ids are "prefix:part:part", each part percent-encoded, so that an id can be
// a part of another id: "run:thread%3Ad1:1". Most are derived from what they
// name; the rest come from the seed below.

// makeID joins a prefix and encoded parts.
func makeID(prefix string, parts ...string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for _, part := range parts {
		b.WriteByte(':')
		for i := range len(part) {
			c := part[i]
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
	}
	return b.String()
}

func runID(thread string, ordinal int) string { return makeID("run", thread, strconv.Itoa(ordinal)) }

func attemptID(run string, ordinal int) string {
	return makeID("run-attempt", run, strconv.Itoa(ordinal))
}

// rootNodeID names the root node of a run's attempt; the first attempt's is
// the run's own.
func rootNodeID(run string, attempt int) string {
	if attempt == 1 {
		return makeID("node", "root", run)
	}
	return makeID("node", "root", run, strconv.Itoa(attempt))
}

func userItemID(message string) string { return makeID("turn-item", "user", message) }

// signalItemID names an item that the orchestrator itself adds to a run:
// "interrupt-request", "error", "context-handoff:…".
func signalItemID(run, signal string) string { return makeID("turn-item", "signal", run, signal) }

func providerThreadID(driver, native string) string {
	return makeID("provider-thread", driver, native)
}

func providerTurnID(driver, native string) string { return makeID("provider-turn", driver, native) }

// providerItemID names what a provider item became: prefix is node, message,
// turn-item or plan. Item ids are only unique within a turn for some providers.
func providerItemID(prefix, driver, nativeTurn, nativeItem string) string {
	return makeID(prefix, driver, nativeTurn, nativeItem)
}

func requestNodeID(request string) string { return makeID("node", "request", request) }

func requestItemID(request string) string { return makeID("turn-item", "request", request) }

func sharedSessionID(instance string) string { return makeID("provider-session", instance) }

func scopeID(thread, name string) string { return makeID("checkpoint-scope", thread, name) }

func rootScopeName(ordinal int) string { return "run-" + strconv.Itoa(ordinal) }

func checkpointID(scope string, ordinal int) string {
	return makeID("checkpoint", scope, strconv.Itoa(ordinal))
}

func effectID(cause, kind, target string) string { return makeID("effect", cause, kind, target) }

// seed is the orchestrator's only randomness: 32 bytes read at start. A random
// id is a keyed hash of the seed, the thread, the version of the thread's
// stream and a counter within one commit. So ids of one thread do not depend
// on what other threads do at the same time, and the same seed used again
// after a restart does not repeat an id.
type seed [32]byte

// id draws an id; the parts must never repeat under one seed and prefix.
func (s seed) id(prefix string, parts ...string) string {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte(makeID(prefix, parts...)))
	return prefix + ":" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// eventID names the event at a version of a thread's stream. Ids of one thread
// sort in order, so that an index of them grows at one place, not at random
// ones, each of which would be a page to write.
func (s seed) eventID(thread string, version int64) string {
	return fmt.Sprintf("%.22s-%08d", s.id("event", thread), version)
}
