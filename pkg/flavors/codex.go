package flavors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Codex is `codex app-server` on stdio: JSON-RPC frames without a "jsonrpc"
// member, one per line. Both sides ask: client ids are strings or integers of
// the client's choice, server ids are integers from 0 and collide with them
// numerically, so ids count per direction. Measured on codex-cli 0.171.0.
var Codex = &Flavor{
	Providers:   []string{"codex"},
	Protocol:    "codex.app-server",
	Transport:   Stdio,
	CheckArgs:   checkAppServerArgs,
	Classify:    fromBytes(classifyRPC),
	OnTape:      fromTape(classifyRPC),
	Verbatim:    true,
	IDKey:       "id",
	CheckID:     checkScalarID,
	NewCodec:    func(Launch) Codec { return &plainCodec{classify: fromBytes(classifyRPC)} },
	Refusal:     refuseRPC,
	VersionArgs: []string{"--version"},
	VersionLine: "codex-cli %s",
	Probe:       probeCodex,
	Version:     codexVersion,
	References: []Place{
		{envelope.Out, "*", "params.threadId"},
		{envelope.Out, "*", "params.turnId"},
		{envelope.Out, "*", "params.expectedTurnId"},
		{envelope.Out, "*", "params.beforeTurnId"},
		{envelope.Out, "*", "params.lastTurnId"},
	},
	Ends: []Place{{envelope.In, "turn/completed", "params.turn.id"}},
	Streams: []Stream{
		codexStream("item/agentMessage/delta"),
		codexStream("item/plan/delta"),
		codexStream("item/reasoning/textDelta", "params.contentIndex"),
		codexStream("item/reasoning/summaryTextDelta", "params.summaryIndex"),
		codexStream("item/commandExecution/outputDelta"),
		codexStream("item/fileChange/outputDelta"),
	},
	Threads: codexThreads,
	// Parallel commands were seen to complete in reverse.
	Items: []Place{{envelope.In, "*", "params.item.id"}, {envelope.In, "*", "params.itemId"}},
	// One status more was seen before a thread is archived, and limits once less
	// where a turn is interrupted.
	States: []Place{
		{envelope.In, "thread/status/changed", ""},
		{envelope.In, "account/rateLimits/updated", ""},
	},
	Volatile: []Place{
		{envelope.In, "*", "emittedAtMs"},
		// UUIDv7 ids of threads, turns and sessions, wherever they stand.
		{envelope.In, "*", "**.threadId"},
		{envelope.In, "*", "**.turnId"},
		{envelope.In, "*", "**.rootTurnId"},
		{envelope.In, "*", "**.sessionId"},
		{envelope.In, "*", "**.forkedFromId"},
		{envelope.In, "*", "**.thread.id"},
		{envelope.In, "*", "**.turn.id"},
		{envelope.In, "*", "**.turns.*.id"},
		{envelope.In, "*", "**.item.id"},
		{envelope.In, "*", "**.items.*.id"},
		{envelope.In, "*", "**.itemId"},
		{envelope.In, "*", "**.reviewThreadId"},
		{envelope.In, "*", "**.senderThreadId"},
		{envelope.In, "*", "**.receiverThreadIds"},
		{envelope.In, "*", "**.agentThreadId"},
		{envelope.In, "*", "**.agentsStates"},
		{envelope.In, "*", "**.readState"},
		{envelope.In, "*", "**.readStates"},
		// Clocks and durations.
		{envelope.In, "*", "**.startedAtMs"},
		{envelope.In, "*", "**.completedAtMs"},
		{envelope.In, "*", "**.startedAt"},
		{envelope.In, "*", "**.completedAt"},
		{envelope.In, "*", "**.createdAt"},
		{envelope.In, "*", "**.updatedAt"},
		{envelope.In, "*", "**.recencyAt"},
		{envelope.In, "*", "**.durationMs"},
		// Process numbers, cursors that embed ids, dated session paths.
		{envelope.In, "*", "**.processId"},
		{envelope.In, "*", "**.turnsBackwardsCursor"},
		{envelope.In, "*", "**.itemsBackwardsCursor"},
		{envelope.In, "*", "**.backwardsCursor"},
		{envelope.In, "*", "**.thread.path"},
		{envelope.In, "*", "**.serverName"},
		{envelope.In, "*", "**.installationId"},
		{envelope.In, "*", "**.userAgent"},
		// The client only echoes these.
		{envelope.Out, "*", "params.threadId"},
		{envelope.Out, "*", "params.turnId"},
		{envelope.Out, "*", "params.expectedTurnId"},
		{envelope.Out, "*", "params.beforeTurnId"},
		{envelope.Out, "*", "params.lastTurnId"},
		{envelope.Out, "*", "params.processId"},
	},
}

// codexStream is the text of an item, which its completion ends.
func codexStream(method string, key ...string) Stream {
	return Stream{
		Dir: envelope.In, Method: method, Path: "params.delta", Key: append([]string{"params.itemId"}, key...),
		Ends: [][2]string{{"item/completed", "params.item.id"}},
	}
}

// refuseRPC answers a request with the JSON-RPC internal error code.
func refuseRPC(request Frame, message string) []byte {
	text, err := json.Marshal(message)
	if err != nil || request.ID == nil {
		return nil // unreachable unless called for something else than a request
	}
	return fmt.Appendf(nil, `{"id":%s,"error":{"code":-32603,"message":%s}}`, request.ID, text)
}

// codexVersion takes the version from the answer to initialize, whose userAgent
// is "client/0.171.0 (…)".
func codexVersion(dir envelope.Direction, f Frame) string {
	if dir != envelope.In || f.Kind != Response {
		return ""
	}
	if !holds(f.Raw, "userAgent", len("user")) && !bytes.Contains(f.Raw, []byte(`\u`)) {
		return "" // most answers, which are long
	}
	_, rest, _ := strings.Cut(gjson.GetBytes(f.Raw, "result.userAgent").Str, "/")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

// holds says whether a word is in b, and looks for its rarest letter.
func holds(b []byte, word string, rarest int) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], word[rarest])
		if i < 0 {
			return false
		}
		at += i
		if at >= rarest && bytes.HasPrefix(b[at-rarest:], []byte(word)) {
			return true
		}
	}
}

// probeCodex takes the version, and the model from a thread's settings.
func probeCodex(dir envelope.Direction, f Frame) map[string]string {
	if dir != envelope.In || f.Kind != Response {
		return nil
	}
	facts := map[string]string{}
	if version := codexVersion(dir, f); version != "" {
		facts["providerVersion"] = version
	}
	if gjson.GetBytes(f.Raw, "result.thread.id").Exists() {
		if model := gjson.GetBytes(f.Raw, "result.model").Str; model != "" {
			facts["model"] = model
		}
	}
	return facts
}
