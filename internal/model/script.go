package model

import (
	"encoding/json"
	"time"
)

// Script is what a model says, and when.
type Script struct {
	File    string
	Replies []Reply
}

// Reply is the answer to one kind of request.
type Reply struct {
	Name  string // basis of ids: "r2" for the second, unless the script names it
	Line  int    // in the script
	When  When
	Error *HTTPError // instead of items; nil for none
	Items []Item
}

// When says which requests a reply is for. All parts must hold.
type When struct {
	User        string // the latest user message contains it; "" means any
	ToolResults int    // tool results after that message
	Agent       string // the subagent the request is made for; "" is the main one
	// Tools is "yes" for requests that offer tools, "no" for those that offer
	// none: agents ask for titles and summaries so. "" means any. One that
	// names it goes first.
	Tools string
	// Probe is true for requests that want a single token: agents ask so
	// whether a model is there.
	Probe bool
	// Attempt is how often this point of the conversation has been asked for,
	// counted from 1; 0 means any time. One that names the attempt goes first.
	Attempt int
}

// HTTPError is a reply that is no stream.
type HTTPError struct {
	Status        int
	Code, Message string
	Headers       map[string]string
}

// Item is one step of a reply. One of its parts is set.
type Item struct {
	Text      []Piece // an assistant message
	Phase     string  // of the message: commentary or final_answer; "" for none
	Reasoning string
	Call      *Call
	Raw       json.RawMessage // a part of the API's own, as it is
	Delay     time.Duration
	Hold      string // wait until the name is released, or the client goes
	Cut       bool   // close the connection in mid-stream
	Failed    *HTTPError
}

// Piece is one delta of a text, or what happens between two. One part is set.
type Piece struct {
	Text  string
	Delay time.Duration
	Hold  string
	Cut   bool
}

// Call is a tool call.
type Call struct {
	Name      string
	Namespace string // "" for none
	ID        string // "" means one made of the reply's name
	Custom    bool   // free text input, not JSON arguments
	Input     string // the arguments as JSON, or the free text
}

// text returns the whole of a message.
func text(pieces []Piece) string {
	s := ""
	for _, p := range pieces {
		s += p.Text
	}
	return s
}

// chunk splits a text into n pieces of about the same length, at characters.
func chunk(s string, n int) []Piece {
	runes := []rune(s)
	if n < 1 {
		n = 1
	}
	var pieces []Piece
	for i := range n {
		from, to := i*len(runes)/n, (i+1)*len(runes)/n
		if to > from {
			pieces = append(pieces, Piece{Text: string(runes[from:to])})
		}
	}
	return pieces
}
