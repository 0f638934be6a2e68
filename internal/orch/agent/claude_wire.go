package agent

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"
)

// The wire of claude is one message per line. Control requests go both ways
// and carry a request_id, which is ours or theirs; everything else is named by
// its type:
//
//	{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}
//	{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{…}}}
//	{"type":"user","message":{"role":"user","content":"…"},"parent_tool_use_id":null,"uuid":"…"}
//	{"type":"result","subtype":"success","is_error":false,…}
//
// To the rpc a control request is a call named by its subtype, any other
// message a notification named by its type, with the whole message as params.
var claudeWire = rpcWire{encode: encodeClaude, decode: decodeClaude}

type claudeControl struct {
	Type      string          `json:"type"` // control_request
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
}

type claudeAnswer struct {
	Type     string `json:"type"` // control_response
	Response struct {
		Subtype   string          `json:"subtype"` // success or error
		RequestID json.RawMessage `json:"request_id"`
		Response  any             `json:"response,omitempty"`
		Error     string          `json:"error,omitempty"`
	} `json:"response"`
}

func encodeClaude(f rpcFrame) any {
	switch {
	case f.Method != "" && f.ID != nil:
		return claudeControl{Type: "control_request", RequestID: string(f.ID), Request: controlRequest(f.Method, f.Params)}
	case f.Method != "":
		return f.Params
	}
	a := claudeAnswer{Type: "control_response"}
	a.Response.Subtype, a.Response.RequestID, a.Response.Response = "success", f.ID, f.Result
	if f.Error != nil {
		a.Response.Subtype, a.Response.Error = "error", f.Error.Message
	}
	return a
}

// controlRequest puts the subtype in front of the other members.
func controlRequest(subtype string, params any) json.RawMessage {
	body := detail(struct {
		Subtype string `json:"subtype"`
	}{subtype})
	if rest := detail(params); len(rest) > 2 && rest[0] == '{' {
		body = append(append(body[:len(body)-1], ','), rest[1:]...)
	}
	return body
}

func decodeClaude(f gjson.Result) rpcIncoming {
	switch typ := f.Get("type").Str; typ {
	case "control_response":
		r := f.Get("response")
		in := rpcIncoming{rpcMessage: rpcMessage{ID: r.Get("request_id").Str}, answer: true, result: r.Get("response")}
		if r.Get("subtype").Str == "error" {
			in.refusal = &rpcError{Message: r.Get("error").String()}
		}
		return in
	case "control_request":
		r := f.Get("request")
		return rpcIncoming{rpcMessage: rpcMessage{ID: f.Get("request_id").Raw, Method: r.Get("subtype").Str, Params: r}}
	default:
		return rpcIncoming{rpcMessage: rpcMessage{Method: typ, Params: f}}
	}
}

// claudePrompt is a user's message.
type claudePrompt struct {
	Type    string `json:"type"` // user
	Message struct {
		Role    string `json:"role"` // user
		Content string `json:"content"`
	} `json:"message"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	// Priority "now" ends the turn that runs, and starts one for this message.
	Priority string `json:"priority,omitempty"`
	UUID     string `json:"uuid"`
}

func newClaudePrompt(uuid, text, priority string) claudePrompt {
	p := claudePrompt{Type: "user", Priority: priority, UUID: uuid}
	p.Message.Role, p.Message.Content = "user", text
	return p
}

type claudeInterrupt struct {
	CancelQueued bool `json:"cancel_queued"`
}

type claudeSetModel struct {
	Model string `json:"model"`
}

type claudeSetMode struct {
	Mode string `json:"mode"`
}

// claudeNames is the name space of the ids that are chosen here.
var claudeNames = [16]byte{0x5b, 0x1f, 0x8e, 0x0d, 0x6c, 0x52, 0x5a, 0x61, 0x9d, 0x3c, 0x27, 0x40, 0xe8, 0x91, 0x14, 0xf3}

// claudeID is the id of a session or prompt that stands for app ids: a UUID of
// version 5, so that the same orchestration says the same twice.
func claudeID(kind string, appIDs ...string) string {
	h := sha1.New()
	h.Write(claudeNames[:])
	h.Write([]byte(kind))
	for _, id := range appIDs {
		h.Write([]byte(strconv.Quote(id)))
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
