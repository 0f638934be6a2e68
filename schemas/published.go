package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Published are the schemas that a provider publishes of its own messages: JSON
// files in a folder, which scripts/schemas.sh fills. Any value in a file may be
// a schema, as in an OpenAPI document. Files are read and schemas compiled when
// they are asked for. Safe for concurrent use.
type Published struct {
	// Version says whose they are, such as "codex 0.171.0".
	Version string

	dir      string
	mutex    sync.Mutex
	compiler *jsonschema.Compiler
	raw      map[string]json.RawMessage
	compiled map[string]*jsonschema.Schema
}

// publishedBase stands for the folder in the names of schemas.
const publishedBase = "provider:///"

// OpenPublished returns the schemas of a folder. The error is one of reading
// its file VERSION, and wraps fs.ErrNotExist where there is none.
func OpenPublished(dir string) (*Published, error) {
	version, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	if err != nil {
		return nil, err
	}
	p := &Published{
		Version: strings.TrimSpace(string(version)), dir: dir,
		compiler: jsonschema.NewCompiler(),
		raw:      map[string]json.RawMessage{}, compiled: map[string]*jsonschema.Schema{},
	}
	p.compiler.LoadURL = p.load
	return p, nil
}

// load resolves references between the files of the folder, and none elsewhere.
func (p *Published) load(address string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(address, publishedBase)
	if !ok || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("schema %s is not in %s", address, p.dir)
	}
	return os.Open(filepath.Join(p.dir, name))
}

// Raw returns the text of a file, such as "v2/TurnStartResponse.json"; nil
// where there is none.
func (p *Published) Raw(file string) (json.RawMessage, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if raw, ok := p.raw[file]; ok {
		return raw, nil
	}
	raw, err := os.ReadFile(filepath.Join(p.dir, file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		raw = nil
	case err != nil:
		return nil, err
	case !json.Valid(raw):
		return nil, fmt.Errorf("%s is not JSON", filepath.Join(p.dir, file))
	}
	p.raw[file] = raw
	return raw, nil
}

// Validate checks doc against the schema at the keys below a file: none for the
// file itself. The error is an *InvalidError when doc does not fit.
func (p *Published) Validate(file string, keys []string, doc []byte) error {
	at := publishedBase + file
	for i, key := range keys {
		if i == 0 {
			at += "#"
		}
		at += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	schema, err := p.compile(at)
	if err != nil {
		return err
	}
	return validate(strings.TrimPrefix(at, publishedBase), schema, doc)
}

func (p *Published) compile(at string) (*jsonschema.Schema, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if s, ok := p.compiled[at]; ok {
		return s, nil
	}
	s, err := p.compiler.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compile schema of %s: %w", p.Version, err)
	}
	p.compiled[at] = s
	return s, nil
}
