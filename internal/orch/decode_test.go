package orch

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scribble fills a value with anything its type can hold.
func scribble(r *rand.Rand, v reflect.Value) {
	texts := []string{"", "a", `"`, `\`, "{,}", "zeile\nzwei\u2028", "<&>", "日本", `\u0041`, "a\"b}]"}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(r.Int64N(1 << 42)).UTC()))
		return
	case json.RawMessage:
		raw := []string{`{"a":[1,"]}",{"b":null}]}`, `null`, `"x\"y"`, `[]`, `17`}
		v.SetBytes([]byte(raw[r.IntN(len(raw))]))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(r, v.Field(i))
		}
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scribble(r, v.Elem())
		}
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() - r.Int64())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Slice:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				scribble(r, v.Index(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		scribble(r, value)
		v.SetMapIndex(reflect.ValueOf(texts[r.IntN(len(texts))]).Convert(v.Type().Key()), value)
	default:
		panic("scribble: " + v.Type().String())
	}
}

// Every entity is decoded in its stored form as encoding/json decodes it.
func TestLayoutsDecodeLikeJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d decoder
	for _, zero := range []entity{
		AppThread{}, Run{}, RunAttempt{}, ExecutionNode{}, Subagent{}, ProviderSession{}, ProviderThread{}, ProviderTurn{},
		RuntimeRequest{}, Message{}, TurnItem{}, PlanArtifact{}, CheckpointScope{}, Checkpoint{}, ContextTransfer{}, ContextHandoff{},
	} {
		typ := reflect.TypeOf(zero)
		fast := 0
		for range 300 {
			v := reflect.New(typ)
			scribble(r, v.Elem())
			raw, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			want, got := reflect.New(typ), reflect.New(typ)
			if err := json.Unmarshal(raw, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if !d.decode(layoutOf(typ), string(raw), got.Elem()) {
				continue
			}
			fast++
			if diff := cmp.Diff(want.Interface(), got.Interface()); diff != "" {
				t.Fatalf("%s of %s:\n%s", typ, raw, diff)
			}
		}
		if fast < 300 {
			t.Errorf("%s: only %d of 300 were known", typ, fast)
		}
	}
}

// What is not in the stored form is refused, never misread.
func TestLayoutsRefuse(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `{}x`, `null`, `[]`, `{"id"}`, `{"id":}`, `{"id":"a"`, `{"id":"a",}`, `{"id":"a" }`, `{"id":1}`,
		`{"nobody":1}`, `{"ordinal":"1"}`, `{"ordinal":1.5}`, `{"completedAt":"yesterday"}`, `{"id":"a""b"}`, `{"id":"\`, `{"a":{`,
	} {
		var run Run
		if new(decoder).decode(layoutOf(reflect.TypeFor[Run]()), raw, reflect.ValueOf(&run).Elem()) {
			t.Errorf("took %s", raw)
		}
	}
}

// What can't be read is told, whatever else can.
func TestLoaderTells(t *testing.T) {
	for kind, row := range map[Kind]string{"later-kind": `{}`, KindRun: `{"id":1}`} {
		l := newLoader("d")
		l.take(KindRun, []string{`{"id":"r"}`})
		l.take(kind, []string{row})
		l.take(KindNode, []string{`{"id":"n"}`})
		if err := l.finish(); err == nil {
			t.Errorf("%s was taken as a %s", row, kind)
		}
	}
}
