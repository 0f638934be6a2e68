package replay

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// feed gives entries in order. Those of a transcript that is not kept in memory
// are read ahead by a goroutine, since reading takes about as long as comparing.
type feed struct {
	entries []envelope.Entry // that come next
	err     error            // what comes after them; nil: more

	batches chan batch // nil where entries are all there is
	stop    chan struct{}
	once    sync.Once
	reader  sync.WaitGroup
}

// batch is some entries and, with the last of them, why there are no more.
type batch struct {
	entries []envelope.Entry
	err     error
}

// A batch ends when it has this many entries, or frames of this many bytes.
const (
	aheadEntries = 512
	aheadBytes   = 256 << 10
)

// open returns a feed that starts at entry number at, counted from 0.
func (s *Script) open(at int) (*feed, error) {
	if s.entries != nil {
		return &feed{entries: s.entries[min(at, len(s.entries)):], err: io.EOF}, nil
	}
	file, err := os.Open(s.Path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	r := envelope.NewReader(s.Path, file)
	r.MaxLine = s.maxLine
	_, err = r.Header()
	for i := 0; i < at && err == nil; i++ {
		_, err = r.Next()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f := &feed{batches: make(chan batch, 2), stop: make(chan struct{})}
	f.reader.Go(func() {
		defer file.Close()
		f.readAhead(r)
	})
	return f, nil
}

// readAhead hands over batches until the transcript's end or close.
func (f *feed) readAhead(r *envelope.Reader) {
	for {
		b := take(r)
		select {
		case f.batches <- b:
		case <-f.stop:
			return
		}
		if b.err != nil {
			return
		}
	}
}

func take(r *envelope.Reader) batch {
	b := batch{entries: make([]envelope.Entry, 0, aheadEntries)}
	for size := 0; len(b.entries) < aheadEntries && size < aheadBytes; {
		e, err := r.Next()
		if err != nil {
			b.err = err
			break
		}
		b.entries = append(b.entries, e)
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			size += len(e.Frame)
		case *envelope.EmitInbound:
			size += len(e.Frame)
		}
	}
	return b
}

// next returns the next entry, nil at the end.
func (f *feed) next() (envelope.Entry, error) {
	for len(f.entries) == 0 && f.err == nil {
		b := <-f.batches // the last one has an error
		f.entries, f.err = b.entries, b.err
	}
	if len(f.entries) > 0 {
		e := f.entries[0]
		f.entries = f.entries[1:]
		return e, nil
	}
	if f.err == io.EOF {
		return nil, nil
	}
	return nil, f.err
}

// close stops reading. It can be called again.
func (f *feed) close() {
	if f.batches == nil {
		return
	}
	f.once.Do(func() { close(f.stop) })
	f.reader.Wait()
}
