//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// makeCorpus fills a folder by corpus, as a process of its own: what that
// takes in memory is the measuring process's for ever, and a process counts
// as its own peak what its parent had when it was started. The secrets are
// printed, one a line.
func makeCorpus(dir, size string) {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		fail(err)
	}
	sources, err := filepath.Glob(filepath.Join("transcripts", "*", "*.ndjson"))
	if err != nil || len(sources) == 0 {
		fail(errors.Join(err, errors.New("no transcripts here to make a corpus of")))
	}
	planted, err := corpus(dir, sources, n)
	if err != nil {
		fail(err)
	}
	for _, secret := range planted {
		fmt.Println(secret)
	}
}

// corpus makes transcripts of about size bytes in all out of ours, and returns
// the secrets it planted.
//
// Each file is one of ours, played over and over: a copy is one more launch of
// the provider. In every copy all string values that tell something get an end
// of their own ("… 1f", "…-1f" for ids), the same for equal strings, so that a
// conversation still fits together and no string is met twice; keys, methods,
// types and other words of the protocol stay, as they do in real recordings. One
// secret is planted in every hundredth copy.
func corpus(dir string, sources []string, size int64) (planted []string, err error) {
	share := size / int64(len(sources))
	r := rand.New(rand.NewPCG(1, 2))
	for i, source := range sources {
		lines, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		head, body, _ := bytes.Cut(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))
		name := filepath.Join(dir, fmt.Sprintf("%03d.ndjson", i))
		secrets, err := repeat(name, head, body, share, r)
		if err != nil {
			return nil, err
		}
		planted = append(planted, secrets...)
	}
	return planted, nil
}

func repeat(name string, head, body []byte, share int64, r *rand.Rand) (planted []string, err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	n := 0
	write := func(b []byte) {
		w.Write(b)
		w.WriteByte('\n')
		n += len(b) + 1
	}
	write(head)
	for copies := 0; int64(n) < share; copies++ {
		if copies%100 == 1 {
			secret := "ghp_" + letters(r, 36)
			planted = append(planted, secret)
			write([]byte(`{"type":"emit_inbound","label":"note","channel":"stderr","frame":"pushed with ` + secret + ` to origin\n"}`))
		}
		for line := range bytes.SplitSeq(body, []byte("\n")) {
			write(distinct(line, copies))
		}
	}
	return planted, w.Flush()
}

func letters(r *rand.Rand, n int) string {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = all[r.IntN(len(all))]
	}
	return string(b)
}

// words are the keys whose values are the protocol's, and compared or counted
// by rules: these stay.
var words = map[string]bool{
	"type": true, "method": true, "kind": true, "operation": true, "status": true, "role": true, "subtype": true, "channel": true,
	"sessionUpdate": true, "label": true, "version": true, "cliVersion": true, "userAgent": true, "jsonrpc": true, "claude_code_version": true, "apiKeySource": true,
}

// distinct returns an entry whose string values belong to one copy alone. The
// first copy is the original.
func distinct(line []byte, copies int) []byte {
	if copies == 0 {
		return line
	}
	out := make([]byte, 0, len(line)+len(line)/8)
	mark := strconv.FormatInt(int64(copies), 36)
	key := ""
	for i := 0; i < len(line); {
		if line[i] != '"' {
			out = append(out, line[i])
			i++
			continue
		}
		end := envelope.SkipString(line, i)
		quoted := line[i:end]
		i = end
		if at := envelope.SkipSpace(line, end); at < len(line) && line[at] == ':' {
			key = string(quoted[1 : len(quoted)-1])
			out = append(out, quoted...)
			continue
		}
		out = append(out, own(quoted, key, mark)...)
	}
	return out
}

// own gives a quoted string an end of its own.
func own(quoted []byte, key, mark string) []byte {
	switch {
	case words[key] || len(quoted) < 8 || quoted[1] == '<':
		return quoted
	case quoted[1] == '{': // JSON within: it must stay JSON
		return fmt.Appendf(nil, `"{\"copy\":\"%s\",%s`, mark, bytes.TrimPrefix(quoted[2:], []byte(" ")))
	case bytes.ContainsRune(quoted, ' '):
		return fmt.Appendf(nil, `%s %s"`, quoted[:len(quoted)-1], mark)
	}
	h := fnv.New32a()
	h.Write(quoted)
	h.Write([]byte(mark))
	return fmt.Appendf(nil, `%s-%s%x"`, quoted[:len(quoted)-1], mark, h.Sum32()&0xff)
}
