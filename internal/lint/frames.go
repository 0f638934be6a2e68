package lint

import (
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

func checkFrame(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		if s.frameErr != nil {
			found(s.line, "frame", "", "illegal %s frame: %v", s.dir, s.frameErr)
		}
	}}
}

func checkID(c *run, found report) checker {
	return checker{entry: func(s *step) {
		if s.frame == nil || s.frame.ID == nil || c.flavor.CheckID == nil {
			return
		}
		if err := c.flavor.CheckID(s.frame.ID); err != nil {
			found(s.line, "frame."+c.flavor.IDKey, "", "%v", err)
		}
	}}
}

func checkIDInFlight(c *run, found report) checker {
	return checker{entry: func(s *step) {
		if s.reuses != nil && s.sure {
			found(s.line, "frame."+c.flavor.IDKey, "", "id %s belongs to the %s of line %d, which is still unanswered",
				s.frame.ID, s.reuses.frame.Method, s.reuses.line)
		}
	}}
}

func checkInboundAnswer(_ *run, found report) checker {
	return checker{entry: func(s *step) { answerless(s, envelope.In, found) }}
}

// checkOutboundAnswer tells at the end of the process: until then the request
// may follow, which is for checkUnreachable.
func checkOutboundAnswer(c *run, found report) checker {
	tell := func(lost []*step) {
		for _, s := range lost {
			answerless(s, envelope.Out, found)
		}
	}
	return checker{
		exit: func(s *step) { tell(s.lost) },
		end:  func() { tell(c.lost) },
	}
}

// answerless reports a response of one direction that answers no request.
func answerless(s *step, dir envelope.Direction, found report) {
	if s.frame == nil || s.frame.Kind != flavors.Response || s.dir != dir || s.answers != nil || !s.sure || s.frame.Stray() {
		return
	}
	hint := ""
	if s.mistyped != "" {
		hint = "the open request has id " + s.mistyped + ", and the type counts"
	}
	found(s.line, "frame", hint, "%s response %s answers no open %s request", dir, s.name(), dir.Opposite())
}

// name is the frame's id, or its method where frames carry no ids.
func (s *step) name() string {
	if s.frame.ID != nil {
		return string(s.frame.ID)
	}
	return s.frame.Method
}

func checkUnanswered(c *run, found report) checker {
	tell := func(dead []*request) {
		for _, r := range dead {
			id := ""
			if r.frame.ID != nil {
				id = " " + string(r.frame.ID)
			}
			found(r.line, "frame", "", "%s request%s (%s) is never answered", r.dir, id, r.frame.Method)
		}
	}
	return checker{
		exit: func(s *step) { tell(s.dead) },
		end:  func() { tell(c.dead) },
	}
}

func checkRepeat(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		e, ok := s.entry.(*envelope.ExpectOutbound)
		if ok && e.Repeat && s.frame != nil && s.frame.Kind != flavors.Request {
			found(s.line, "repeat", "", "repeat on a %s: want a request", s.frame.Kind)
		}
	}}
}

func checkUnreachable(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		if r := s.answeredEarly; r != nil {
			found(r.line, "frame", "", "response %s answers the request of line %d, which the provider sends after it",
				r.name(), s.line)
		}
	}}
}
