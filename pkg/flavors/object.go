package flavors

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// object is a JSON object's members in their order, values as they stand.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// readObject reads an object that has no key twice. The values are slices of
// raw.
func readObject(raw []byte) (object, error) {
	var o object
	var twice error
	ok, err := envelope.ValidMembers(raw, func(key, value []byte) error {
		k := envelope.Unquote(key)
		if o.get(k) != nil && twice == nil {
			twice = fmt.Errorf("two members %q", k)
		}
		o = append(o, member{k, value})
		return nil
	})
	switch {
	case err != nil:
		return nil, err // unreachable: the callback gives none
	case !ok:
		return nil, errors.New("not JSON")
	case raw[envelope.SkipSpace(raw, 0)] != '{':
		return nil, errors.New("not a JSON object")
	case twice != nil:
		return nil, twice
	}
	return o, nil
}

// get returns a member's value, nil when there is none.
func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// str returns a member that is a string; ok is false for anything else.
func (o object) str(key string) (s string, ok bool) {
	v := o.get(key)
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	return envelope.Unquote(v), true
}

// inner returns a member that is an object; ok is false for anything else.
func (o object) inner(key string) (in object, ok bool) {
	v := o.get(key)
	if len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	in, err := readObject(v)
	return in, err == nil
}

// with returns o with a member more.
func (o object) with(key string, value []byte) object {
	return append(o, member{key, value})
}

// withString returns o with a string member more.
func (o object) withString(key, value string) object {
	return o.with(key, quoted(value))
}

// without returns the members that have none of the keys.
func (o object) without(keys ...string) object {
	var rest object
next:
	for _, m := range o {
		for _, k := range keys {
			if m.key == k {
				continue next
			}
		}
		rest = append(rest, m)
	}
	return rest
}

// json returns the object as one line.
func (o object) json() json.RawMessage { return o.append(nil) }

func (o object) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(envelope.AppendString(dst, m.key), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// quoted returns s as a JSON string.
func quoted(s string) json.RawMessage { return envelope.AppendString(nil, s) }

// list returns texts as a JSON array of strings.
func list(texts []string) json.RawMessage {
	raw := []byte{'['}
	for i, s := range texts {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = envelope.AppendString(raw, s)
	}
	return append(raw, ']')
}

// truth is the JSON true of a presence flag.
var truth = json.RawMessage("true")
