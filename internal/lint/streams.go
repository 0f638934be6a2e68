package lint

import (
	"hash/maphash"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// stream is a text that comes in pieces.
type stream struct {
	line   int // of the first piece that is held
	path   string
	key    []byte
	buf    []byte
	pieces int
}

// pieces adds the pieces of streams that a frame holds.
func (x *texts) pieces(s *step) {
	e, ok := s.entry.(*envelope.EmitInbound)
	if !ok {
		return
	}
	if e.Channel == envelope.Stderr || e.Channel == envelope.Stdout {
		x.piece(maphash.String(seed, string(e.Channel)), s.line, "", s.raw)
		return
	}
	s.eachStream(func(p *flavors.Stream, from, to int) {
		if s.raw[from] == '"' {
			x.name = p.AppendName(append(append(x.name[:0], p.Path...), 0), s.frame, s.onTape)
			x.piece(maphash.Bytes(seed, x.name), s.line, p.Path, s.raw[from:to])
		}
	})
}

// piece adds what stands at a path of the frame, "" for the frame itself.
func (x *texts) piece(id uint64, line int, path string, quoted []byte) {
	st := x.streams[id]
	if st == nil {
		if len(x.order) >= mostStreams {
			x.cut(x.streams[x.order[0]], 0)
			delete(x.streams, x.order[0])
			x.order = x.order[1:]
		}
		st = &stream{line: line, path: "frame"}
		if path != "" {
			st.path, st.key = "frame."+path, []byte(path[strings.LastIndexByte(path, '.')+1:])
		}
		x.streams[id] = st
		x.order = append(x.order, id)
	}
	st.pieces++
	st.buf = envelope.AppendUnquoted(st.buf, quoted)
	if len(st.buf) > mostStream {
		x.cut(st, keepStream)
		st.line = line
	}
}

// cut shows what a stream holds and keeps its end. One piece alone has been
// shown as a string.
func (x *texts) cut(st *stream, keep int) {
	if st.pieces > 1 {
		x.unwrap(&text{line: st.line, body: st.buf, key: st.key, root: st.path, via: "stream"}, 3)
	}
	n := copy(st.buf, st.buf[max(0, len(st.buf)-keep):])
	if keep == 0 {
		n = 0
	}
	st.buf = st.buf[:n]
}

// flush shows all streams: nothing goes on after a process.
func (x *texts) flush() {
	for _, id := range x.order {
		x.cut(x.streams[id], 0)
	}
	clear(x.streams)
	x.order = x.order[:0]
}
