package lint

import "github.com/replaypeer/replaypeer/pkg/envelope"

func checkSeal(c *run, found report) checker {
	var seal envelope.Seal
	want, sealed := "", false
	return checker{
		header: func(h *envelope.Header) { want, sealed = metadataString(h, "seal") },
		entry: func(s *step) {
			if sealed {
				seal.Add(s.entry)
			}
		},
		end: func() {
			if !sealed || c.broken {
				return
			}
			if got := seal.Sum(); got != want {
				found(c.hdr.Line, "metadata.seal", c.again(),
					"the inbound frames are not the recorded ones: they sum to %s", got)
			}
		},
	}
}

func checkNoSeal(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		_, sealed := metadataString(h, "seal")
		source, _ := metadataString(h, "source")
		if !sealed && source != "hand-written" {
			found(h.Line, "metadata", "", "no seal: an edit of what the provider said would not show")
		}
	}}
}
