package peer

import (
	"bytes"
	"fmt"
	"io"
)

const (
	blockSize = 64 << 10
	blockLeft = 4 << 10 // a block with less room is left to its lines
)

// lineError is a line beyond the limit.
type lineError struct {
	limit int
	start string
}

func (e *lineError) Error() string {
	return fmt.Sprintf("a line is longer than %d bytes: raise the line limit", e.limit)
}

// readLines cuts r into lines at LF and delivers them in batches, one per
// read. A last line without LF is a line. The slices are never written to
// again. It returns nil at the end of input and *lineError for a line that is
// too long, once the lines before it are delivered.
func readLines(r io.Reader, limit int, deliver func([][]byte)) error {
	block := make([]byte, 0, blockSize)
	start := 0 // of the line that is not complete yet
	var lines [][]byte
	for {
		if cap(block)-len(block) < blockLeft {
			rest := len(block) - start
			grown := make([]byte, rest, max(blockSize, 2*rest))
			copy(grown, block[start:])
			block, start = grown, 0
		}
		n, err := r.Read(block[len(block):cap(block)])
		scan := len(block)
		block = block[:len(block)+n]
		lines = lines[:0]
		var long error
		for {
			i := bytes.IndexByte(block[scan:], '\n')
			if i < 0 {
				break
			}
			end := scan + i
			if end-start > limit {
				long = tooLong(block[start:end], limit)
				break
			}
			lines = append(lines, block[start:end:end])
			start, scan = end+1, end+1
		}
		if long == nil && len(block)-start > limit {
			long = tooLong(block[start:], limit)
		}
		if len(lines) > 0 {
			deliver(lines)
		}
		if long != nil {
			return long
		}
		if err != nil {
			if start < len(block) {
				deliver([][]byte{block[start:]})
			}
			return nil
		}
	}
}

// readProse delivers what comes from r, as it comes, up to its end.
func readProse(r io.Reader, deliver func([]byte)) {
	for {
		block := make([]byte, blockLeft)
		n, err := r.Read(block)
		if n > 0 {
			deliver(block[:n])
		}
		if err != nil {
			return
		}
	}
}

func tooLong(line []byte, limit int) error {
	return &lineError{limit: limit, start: string(line[:min(len(line), 200)])}
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
