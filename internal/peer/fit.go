package peer

import (
	"fmt"
	"io"
	"os"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// fit makes the script that of the launch: the protocol must be the one that
// the arguments ask for, and the agent the one that was asked for.
func fit(cfg Config, script *replay.Script, args []string) error {
	if check := script.Flavor.CheckArgs; check != nil && len(args) > 0 {
		if err := check(args); err != nil {
			return err
		}
	}
	if err := checkAs(cfg); err != nil {
		return err
	}
	if cfg.As != "" {
		script.Header.Provider = cfg.As
	}
	return nil
}

// checkAs says whether the transcript can be played as another agent. It reads
// the file entry by entry.
func checkAs(cfg Config) error {
	if cfg.As == "" {
		return nil
	}
	file, err := os.Open(cfg.Transcript)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer file.Close()
	r := envelope.NewReader(cfg.Transcript, file)
	r.MaxLine = cfg.MaxLine
	h, err := r.Header()
	if err != nil {
		return err
	}
	check, err := flavors.Retarget(h, cfg.As)
	if err != nil {
		return &envelope.SyntaxError{File: cfg.Transcript, Line: h.Line, Msg: err.Error()}
	}
	flavor, err := flavors.ByProtocol(h.Protocol)
	if err != nil {
		return err // unreachable unless Retarget accepts an unknown protocol
	}
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := frameOf(flavor, e)
		if err == nil && f != nil {
			err = check(*f)
		}
		if err != nil {
			line, _ := e.Position()
			return &envelope.SyntaxError{File: cfg.Transcript, Line: line, Msg: err.Error()}
		}
	}
}

// frameOf returns the logical frame of an entry, nil where it has none.
func frameOf(flavor *flavors.Flavor, e envelope.Entry) (*flavors.Frame, error) {
	var f flavors.Frame
	var err error
	switch e := e.(type) {
	case *envelope.ExpectOutbound:
		f, err = flavor.Classify(envelope.Out, e.Frame)
	case *envelope.EmitInbound:
		if e.Channel != "" && e.Channel != envelope.Protocol {
			return nil, nil
		}
		f, err = flavor.Classify(envelope.In, e.Frame)
	case *envelope.RuntimeExit:
		return nil, nil
	default:
		return nil, fmt.Errorf("entry of type %T", e) // unreachable unless an Entry is added
	}
	return &f, err
}
